import Foundation

#if canImport(Glibc)
    import Glibc
#elseif canImport(Musl)
    import Musl
#else
    import Darwin
#endif

/// Facts about paths on the disk. None of them follows a symlink in the last component.
package enum FileNames {
    /// True when both paths name the same file; false if either is missing.
    package static func areOfOneFile(_ path: String, _ other: String) -> Bool {
        var one = stat()
        var two = stat()
        return lstat(path, &one) == 0 && lstat(other, &two) == 0 && one.st_ino == two.st_ino
            && one.st_dev == two.st_dev
    }

    /// True when an entry of any kind has the name.
    package static func exists(_ path: String) -> Bool {
        var status = stat()
        return lstat(path, &status) == 0
    }

    /// True for a file with more than one name; false if it is missing.
    package static func hasOtherName(_ path: String) -> Bool {
        var status = stat()
        return lstat(path, &status) == 0 && status.st_nlink > 1
    }
}
