import FKMiddleware
import Foundation

/// How many tasks the process's limit on open descriptors has room for.
///
/// The limit itself gives the first answer. Where descriptors run out nevertheless, because connections or the application
/// take them, fewer tasks run: as many as were running then, and one more every `patience` seconds.
struct DescriptorBudget {
    /// What is open besides the tasks: streams, lock, folders, the transport's own.
    static let reserved = 24
    /// A part file, a connection, and the info file with the live counters.
    static let perTask = 3
    /// Nanoseconds.
    static let patience: Int64 = 5_000_000_000

    private let most: Int
    private var fewer: Int?
    private var relaxDue: Int64 = .max

    /// - Parameter limit: how many descriptors the process may have; nil asks the system.
    init(limit: Int? = nil) {
        most = max(1, ((limit ?? Self.systemLimit) - Self.reserved) / Self.perTask)
    }

    /// Tasks that may run at once, at least 1.
    var slots: Int { min(fewer ?? .max, most) }

    /// Descriptors ran out while so many other tasks were running.
    mutating func ranOut(running: Int, now: Int64) {
        fewer = max(1, running)
        relaxDue = now + Self.patience
    }

    /// Called now and then: gives a slot back where it is time.
    mutating func relax(now: Int64) {
        guard let fewer, now >= relaxDue else { return }
        self.fewer = fewer < most ? fewer + 1 : nil
        relaxDue = now + Self.patience
    }

    private static var systemLimit: Int {
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

extension DownloadError {
    /// The process, or the whole system, has too many files and connections open.
    var isOutOfDescriptors: Bool {
        guard isRetryable, let underlying else { return false }
        return [EMFILE, ENFILE].contains { underlying.contains(String(cString: strerror($0))) }
    }
}
