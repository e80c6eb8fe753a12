import FKMiddleware

/// A listener of a downloader that may not own its work path.
enum SharedListener {
    case task(TaskSelector, end: (@Sendable () -> Void)?, @Sendable (DownloadInfo) -> Void)
    case attempts(TaskSelector, end: (@Sendable () -> Void)?, @Sendable (AttemptInfo) -> Void)
    case barrel(String, end: (@Sendable () -> Void)?, @Sendable (BarrelInfo) -> Void)
    /// Every change of state of every task. `missed` is called where changes may have been missed.
    case states(missed: @Sendable () -> Void, @Sendable (DownloadInfo) -> Void)
    case drained(@Sendable () -> Void)
    case owner(end: (@Sendable () -> Void)?, @Sendable (EngineOwner) -> Void)

    /// The closure that ends a sequence; nil for a callback.
    var end: (@Sendable () -> Void)? {
        switch self {
        case .task(_, let end, _), .attempts(_, let end, _), .barrel(_, let end, _), .owner(let end, _): end
        case .states, .drained: nil
        }
    }

    /// True if the listener is promised every change after its registration. `fk` compares the tasks itself.
    var needsChanges: Bool {
        switch self {
        case .task, .attempts, .barrel, .drained: true
        case .states, .owner: false
        }
    }

    func isAbout(_ selector: TaskSelector) -> Bool {
        switch (self, selector) {
        case (.task(let own, _, _), _), (.attempts(let own, _, _), _): own == selector
        case (.barrel(let name, _, _), .barrel(let other)): name.isExactly(other)
        default: false
        }
    }
}

/// The listeners of a downloader that may not own its work path, with their numbers. A number stays when the engine
/// changes, and is never used again.
struct SharedListeners {
    struct Registration {
        let listener: SharedListener
        /// The number at the engine of this process; nil while there is none.
        var atEngine: UInt64?
    }

    private var registrations: [UInt64: Registration] = [:]
    private var lastNumber: UInt64 = 0

    /// A new number.
    mutating func number() -> UInt64 {
        lastNumber += 1
        return lastNumber
    }

    mutating func add(_ listener: SharedListener) -> UInt64 {
        let number = number()
        registrations[number] = Registration(listener: listener)
        return number
    }

    @discardableResult
    mutating func remove(_ number: UInt64) -> Registration? { registrations.removeValue(forKey: number) }

    mutating func remove(about selector: TaskSelector) {
        registrations = registrations.filter { !$0.value.listener.isAbout(selector) }
    }

    /// Removes all listeners.
    ///
    /// - Returns: the closures that end the sequences of owners. The engine or the follower ends the others.
    mutating func removeAll() -> [@Sendable () -> Void] {
        defer { registrations = [:] }
        return registrations.values.compactMap { if case .owner(let end, _) = $0.listener { end } else { nil } }
    }

    /// All numbers, in the order of registration.
    var numbers: [UInt64] { registrations.keys.sorted() }

    /// The listener with this number, if it is at no engine yet.
    func unregistered(_ number: UInt64) -> SharedListener? {
        guard let registration = registrations[number], registration.atEngine == nil else { return nil }
        return registration.listener
    }

    /// Notes the number at the engine. Returns false if the listener was removed meanwhile.
    mutating func note(_ number: UInt64, atEngine: UInt64) -> Bool {
        guard registrations[number] != nil else { return false }
        registrations[number]?.atEngine = atEngine
        return true
    }

    var ofOwners: [@Sendable (EngineOwner) -> Void] {
        registrations.values.compactMap { if case .owner(_, let callback) = $0.listener { callback } else { nil } }
    }

    var whenMissed: [@Sendable () -> Void] {
        registrations.values.compactMap { if case .states(let missed, _) = $0.listener { missed } else { nil } }
    }
}
