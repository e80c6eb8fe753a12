import Foundation

#if canImport(Glibc)
    import Glibc
#endif

/// The system's limit on open files and connections of this process.
enum DescriptorLimit {
    /// More than 256 files at once with all their connections need.
    private static let enough: rlim_t = 10_240

    /// The descriptors that one download needs besides those that are open at the start: six for the program itself, four
    /// for the transport, six for the task, and the rest for name lookups, TLS and the system's libraries.
    static let needed = 19

    /// Raises the limit of open files and connections to the maximum that the system allows. The usual limit of
    /// 1,024, or 256 on macOS, is for programs that use `select`, and too low for many files over many connections.
    static func raise() {
        guard var limit = current, limit.rlim_cur < min(limit.rlim_max, enough) else { return }
        limit.rlim_cur = min(limit.rlim_max, enough)
        _ = setrlimit(resource, &limit)
    }

    /// The reason why the process cannot work; nil if it has enough descriptors.
    ///
    /// Call it after `raise` and before anything opens a file. Without a free descriptor, libdispatch ends the process: once
    /// a second it opens `/proc/TID/stat` of its busy threads, and traps if that fails.
    static var shortage: String? {
        guard let limit = current else { return nil }
        let most = Int32(clamping: limit.rlim_cur)
        var number: Int32 = 0
        var free = 0
        while number < most, free < needed {
            if fcntl(number, F_GETFD) < 0 { free += 1 }
            number += 1
        }
        guard free < needed else { return nil }
        return "The limit of open files is \(most), and \(Int(most) - free) are in use. fk needs \(needed) more: "
            + "raise the limit to \(Int(most) - free + needed) (ulimit -n)."
    }

    private static var current: rlimit? {
        var limit = rlimit()
        return getrlimit(resource, &limit) == 0 ? limit : nil
    }

    #if canImport(Glibc)
        private static let resource = __rlimit_resource_t(RLIMIT_NOFILE.rawValue)
    #else
        private static let resource = RLIMIT_NOFILE
    #endif
}
