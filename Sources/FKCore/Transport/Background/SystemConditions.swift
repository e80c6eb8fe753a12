import Foundation

#if canImport(Darwin)
    import FKMiddleware
    import Network
#endif

/// The conditions for which the system delays background downloads. On Linux there are none.
package struct SystemConditions: Sendable, Hashable {
    /// Low Power Mode is on.
    package var isLowPower = false
    /// The network is a mobile one or a personal hotspot.
    package var isExpensive = false
    /// The network is in Low Data Mode.
    package var isConstrained = false

    /// Creates conditions; the default has none.
    package init(isLowPower: Bool = false, isExpensive: Bool = false, isConstrained: Bool = false) {
        self.isLowPower = isLowPower
        self.isExpensive = isExpensive
        self.isConstrained = isConstrained
    }

    /// Why a request is delayed; nil if nothing is known to delay it.
    ///
    /// | condition | delays |
    /// | --- | --- |
    /// | an expensive network | requests for which `Networks.allowsExpensive` is false |
    /// | a network in Low Data Mode | requests for which `Networks.allowsConstrained` is false, and discretionary ones |
    /// | Low Power Mode | discretionary requests |
    package func delay(isDiscretionary: Bool, _ networks: Networks) -> String? {
        if isExpensive, !networks.allowsExpensive {
            return "the network is expensive, and such networks are not allowed"
        }
        if isConstrained, !networks.allowsConstrained || isDiscretionary {
            return isDiscretionary
                ? "the network is in Low Data Mode, in which discretionary downloads wait"
                : "the network is in Low Data Mode, which is not allowed"
        }
        return isLowPower && isDiscretionary ? "Low Power Mode is on, in which discretionary downloads wait" : nil
    }

    #if canImport(Darwin)
        private static let network: Locked<SystemConditions> = {
            let state = Locked(SystemConditions())
            let monitor = NWPathMonitor()
            monitor.pathUpdateHandler = { path in
                state.withLock {
                    $0 = SystemConditions(isExpensive: path.isExpensive, isConstrained: path.isConstrained)
                }
            }
            monitor.start(queue: DispatchQueue(label: "fk.network"))
            return state
        }()

        /// The conditions now.
        package static var current: SystemConditions {
            var conditions = network.withLock(\.self)
            conditions.isLowPower = ProcessInfo.processInfo.isLowPowerModeEnabled
            return conditions
        }
    #else
        /// The conditions now.
        package static var current: SystemConditions { SystemConditions() }
    #endif
}
