import FKMiddleware
import Foundation

/// Limits the number of running tasks by the process's limit on open descriptors.
///
/// The system's limit sets the first number. If descriptors run out nevertheless, because connections or the
/// application use them, the number falls to the tasks that ran at that moment. It then rises by one every `patience`
/// seconds.
package struct DescriptorBudget {
    /// Descriptors for everything but tasks: streams, lock, folders, and those of the transport.
    static let reserved = 24
    /// Descriptors for a task: a part file, a connection, the info file with the live counters, and the part file once more
    /// while a `DigestFollower` reads it.
    static let perTask = 4
    /// In nanoseconds.
    static let patience: Int64 = 5_000_000_000

    private let most: Int
    private var fewer: Int?
    private var relaxDue: Int64 = .max

    /// - Parameter limit: the maximum number of open descriptors; nil for the system's limit.
    init(limit: Int? = nil) {
        most = max(1, ((limit ?? ProcessInfo.descriptorLimit) - Self.reserved) / Self.perTask)
    }

    /// The number of tasks that may run at once, at least 1.
    var slots: Int { min(fewer ?? .max, most) }

    /// Lowers the number after descriptors ran out.
    ///
    /// - Parameter running: the number of other running tasks at that moment.
    mutating func ranOut(running: Int, now: Int64) {
        fewer = max(1, running)
        relaxDue = now + Self.patience
    }

    /// Raises the number by one if it is due. The engine calls it once a second.
    mutating func relax(now: Int64) {
        guard let fewer, now >= relaxDue else { return }
        self.fewer = fewer < most ? fewer + 1 : nil
        relaxDue = now + Self.patience
    }
}

extension ProcessInfo {
    /// The system's limit on open descriptors of this process.
    package static var descriptorLimit: Int {
        var limit = rlimit()
        #if canImport(Glibc)
            let resource = __rlimit_resource_t(RLIMIT_NOFILE.rawValue)
        #else
            let resource = RLIMIT_NOFILE
        #endif
        guard getrlimit(resource, &limit) == 0 else { return 256 }
        return Int(clamping: limit.rlim_cur)
    }
}
