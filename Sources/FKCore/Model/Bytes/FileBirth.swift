import CSystem

/// When a file was created. It tells a file from a later one that has got its inode. It has a file of its own: the tests do
/// not see the members that a file with this import gives to `stat`.
package enum FileBirth {
    /// Nanoseconds since 1970; nil if the file system does not tell.
    ///
    /// - Parameter name: in the open folder, or "" for the open file itself. A symlink is not followed.
    package static func time(_ name: String, in folder: Int32) -> Int64? {
        let time = fk_born(folder, name)
        return time == 0 ? nil : time
    }
}
