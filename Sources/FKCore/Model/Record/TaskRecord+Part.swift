import FKMiddleware

/// Where the part file is. No other code knows it.
///
/// It is made in the destination, or in the folder for part files (`Configure.partsFolder`), which the record names. A whole part
/// is brought to the destination, with the same name, before the record has the path of the finished file. A process that is
/// killed meanwhile leaves it in one of the two folders, or a part of a copy in the destination.
extension TaskRecord {
    /// The recorded path of the part file; nil without one.
    ///
    /// - Parameter home: the destination.
    package func partPath(home: String) -> String? { partName.map { (partFolder ?? home).path(of: $0) } }

    /// The folders in which a file with the part's name is the task's: the recorded one, and the destination.
    package func partFolders(home: String) -> [String] { (partFolder.map { [$0] } ?? []) + [home] }

    /// The path that the part has, or had, beside the file that is about to get its final name.
    package var partBesideFile: String? { partName.flatMap { part in path.map { $0.folderPart.path(of: part) } } }

    /// True if the record says `complete` but the part file still has its own name: the process ended between writing
    /// the record and renaming the file. That order saves a small file one write. The task is not complete, but has
    /// all its bytes.
    ///
    /// Another work path may have its part under that name by now: only the file of `written` counts.
    package var isRenameMissing: Bool { state == .complete && hasPartBesideFile }

    /// True if the part that is about to get its final name, or was, still has its own one.
    package var hasPartBesideFile: Bool {
        guard let part = partBesideFile, part.existsOnDisk else { return false }
        guard let written, let found = FileIdentity(path: part) else { return true }
        // Some file systems give inodes other numbers after each mount.
        return found.inode == written.inode && found.isOne(with: written) != false
            || found.length == written.length && FileIdentity.isSameTime(found.time, written.time)
    }

    /// True if the finished file survives a power cut; nil if it is not finished or not the task's own.
    package var isOnDisk: Bool? { state == .complete && isForeign != true ? synced == true : nil }
}
