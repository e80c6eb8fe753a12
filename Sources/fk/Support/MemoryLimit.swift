import Foundation

/// The system's limit on the address space of this process (`ulimit -v`).
enum MemoryLimit {
    /// Threads, libraries and buffers of a download, with room to spare. Where the system makes no thread, libdispatch tries for ever,
    /// and other libraries end the process.
    static let needed: UInt64 = 192 << 20

    /// The reason why the process cannot work; nil if there is no limit, or a higher one.
    static var shortage: String? {
        #if os(Linux)
            var limit = rlimit()
            guard getrlimit(resource, &limit) == 0, limit.rlim_cur < needed else { return nil }
            return
                "The limit of memory is \(limit.rlim_cur >> 10) KiB, and fk needs \(needed >> 10) KiB: raise it "
                + "(ulimit -v \(needed >> 10))."
        #else
            // The limit has no effect.
            return nil
        #endif
    }

    #if canImport(Glibc)
        private static let resource = __rlimit_resource_t(RLIMIT_AS.rawValue)
    #elseif os(Linux)
        private static let resource = RLIMIT_AS
    #endif
}
