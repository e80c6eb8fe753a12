import Foundation

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

    /// The reason why the process cannot work; nil if it can open enough files.
    ///
    /// Call it after `raise` and before anything else opens a file: libdispatch ends the process when it cannot make its
    /// queue of events at the start, or, once a second, open `/proc/TID/stat` of its busy threads.
    static var shortage: String? {
        var opened: [Int32] = []
        defer { for descriptor in opened { close(descriptor) } }
        while opened.count < needed {
            let descriptor = open("/", O_RDONLY | O_CLOEXEC)
            let code = errno
            guard descriptor < 0 else {
                opened.append(descriptor)
                continue
            }
            guard code == EMFILE, let limit = current else {
                let reason = String(cString: strerror(code))
                return "fk needs \(needed) open files, and the system allows \(opened.count): \(reason)."
            }
            let most = Int(clamping: limit.rlim_cur)
            return
                "The limit of open files is \(most), and \(most - opened.count) are in use. fk needs \(needed) more: "
                + "raise the limit to \(most - opened.count + needed) (ulimit -n)."
        }
        return nil
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
