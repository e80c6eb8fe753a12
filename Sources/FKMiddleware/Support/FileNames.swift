import Foundation

/// Facts about paths on the disk. None of them follows a symlink in the last component.
package enum FileNames {
    /// True when both paths name the same file; false if either is missing.
    package static func areOfOneFile(_ path: String, _ other: String) -> Bool {
        var one = stat()
        var two = stat()
        return lstat(path, &one) == 0 && lstat(other, &two) == 0 && one.st_ino == two.st_ino
            && one.st_dev == two.st_dev
    }

    /// Renames a file to a name that no other file has, where the file system has neither exclusive renames nor hard links. An
    /// empty file of our own reserves the name, and the rename replaces it while it is still that file. A process that is
    /// killed in between leaves the empty file.
    ///
    /// - Parameters:
    ///   - folder: a descriptor of the folder of both names; `AT_FDCWD`, the default, for absolute paths.
    ///   - reserved: called once the name is reserved; the default does nothing.
    /// - Returns: 0, or -1 with `errno`, which is `EEXIST` for a name that is taken.
    package static func renameByReserving(
        _ name: String, to newName: String, in folder: Int32 = AT_FDCWD, reserved: () -> Void = {}
    ) -> Int32 {
        let own = openat(folder, newName, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0o666)
        guard own >= 0 else { return -1 }
        reserved()
        var isReserved: Bool {
            var opened = stat()
            var named = stat()
            return fstat(own, &opened) == 0 && fstatat(folder, newName, &named, AT_SYMLINK_NOFOLLOW) == 0
                && opened.st_ino == named.st_ino && opened.st_dev == named.st_dev && named.st_size == 0
                && named.st_nlink == 1
        }
        var code = EEXIST
        if isReserved {
            code = renameat(folder, name, folder, newName) == 0 ? 0 : errno
            if code != 0, isReserved { unlinkat(folder, newName, 0) }
        }
        close(own)
        errno = code
        return code == 0 ? 0 : -1
    }

    /// True for a file with more than one name; false if it is missing.
    package static func hasOtherName(_ path: String) -> Bool {
        var status = stat()
        return lstat(path, &status) == 0 && status.st_nlink > 1
    }
}

extension String {
    /// True when an entry of any kind has the path. A symlink is an entry, wherever it leads.
    package var existsOnDisk: Bool {
        var status = stat()
        return lstat(self, &status) == 0
    }
}
