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

    /// True when something, of whatever kind, bears the name.
    package static func exists(_ path: String) -> Bool {
        var status = stat()
        return lstat(path, &status) == 0
    }

    /// True for a file that has more than one name. False where it is not there.
    package static func hasOtherName(_ path: String) -> Bool {
        var status = stat()
        return lstat(path, &status) == 0 && status.st_nlink > 1
    }
}
