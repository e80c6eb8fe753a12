import Foundation

enum DescriptorLimit {
    /// More than 256 files at once with all their connections need.
    private static let enough: rlim_t = 10_240

    /// Raises the limit of open files and connections to the maximum that the system allows. The usual limit of
    /// 1,024, or 256 on macOS, is for programs that use `select`, and too low for many files over many connections.
    static func raise() {
        #if canImport(Glibc)
            let resource = __rlimit_resource_t(RLIMIT_NOFILE.rawValue)
        #else
            let resource = RLIMIT_NOFILE
        #endif
        var limit = rlimit()
        guard getrlimit(resource, &limit) == 0, limit.rlim_cur < min(limit.rlim_max, enough) else { return }
        limit.rlim_cur = min(limit.rlim_max, enough)
        _ = setrlimit(resource, &limit)
    }
}
