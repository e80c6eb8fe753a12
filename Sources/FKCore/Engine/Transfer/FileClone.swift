import CSystem

/// Copies of files that share their blocks. It has a file of its own: the tests do not see the members that a file with
/// this import gives to `stat`.
enum FileClone {
    /// Makes an empty file a clone of another one. Both are open descriptors.
    ///
    /// - Returns: false where the file system cannot share blocks.
    static func clone(_ source: Int32, to copy: Int32) -> Bool { fk_clone(copy, source) == 0 }
}
