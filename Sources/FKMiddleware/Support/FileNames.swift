import Foundation

#if canImport(Glibc)
    import Glibc
#elseif canImport(Musl)
    import Musl
#else
    import Darwin
#endif

/// What two paths have in common on the disk. A symlink is looked at itself, not what it leads to.
package enum FileNames {
    /// Two names of one file. False where either is not there.
    package static func areOfOneFile(_ path: String, _ other: String) -> Bool {
        var one = stat()
        var two = stat()
        return lstat(path, &one) == 0 && lstat(other, &two) == 0 && one.st_ino == two.st_ino
            && one.st_dev == two.st_dev
    }
}
