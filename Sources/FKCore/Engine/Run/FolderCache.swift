import FKMiddleware

/// The open destination folders of an engine, shared by all tasks.
///
/// Paths are compared by their bytes, because canonically equivalent paths are different folders on Linux. A folder that was
/// removed or replaced is opened again; this is checked at most once a second.
struct FolderCache {
    /// The maximum number of folders. Beyond it the cache is emptied, which bounds the open descriptors.
    static let limit = 64
    /// The nanoseconds between two checks of a folder.
    static let trust: Int64 = 1_000_000_000

    /// The folders with the time of their last check, in nanoseconds of the monotonic clock.
    private var folders = ExactText.Map<(folder: Folder, seen: Int64)>()

    var count: Int { folders.count }

    /// Opens a folder. A missing one is created with its parents.
    ///
    /// - Parameter workPath: must not contain the folder; nil for a folder that belongs to it.
    /// - Throws: `.destination` if it cannot be created or opened, or if it is in the work path.
    mutating func folder(
        _ path: String, outside workPath: WorkPath?, now: Int64
    ) throws(DownloadError) -> Folder {
        if let (folder, seen) = folders[path] {
            if now - seen < Self.trust { return folder }
            if folder.isStillThere {
                folders[path] = (folder, now)
                return folder
            }
        }
        // Before it is created, and again once it is open: a symlink may have come meanwhile.
        if let workPath { try Folder.checkOutside(workPath, path) }
        let folder = try Folder(path: path, creates: true)
        if let workPath { try folder.checkOutside(workPath) }
        if folders.count >= Self.limit { folders.removeAll() }
        folders[path] = (folder, now)
        return folder
    }

    /// Closes the folders that no task has asked for in the last second, for an engine without running tasks.
    mutating func closeUnused(now: Int64) {
        for (path, open) in Array(folders.pairs) where now - open.seen >= Self.trust { folders.remove(path) }
    }

    // MARK: Publishing

    /// The folders that were found in their places in this turn; nil outside of a turn.
    private var checked: [ObjectIdentifier]?

    /// Begins a turn of the engine. Files that arrive together are published together, and one look at their folder is
    /// enough for all of them.
    mutating func beginTurn() { checked = [] }
    mutating func endTurn() { checked = nil }

    /// Same as `Folder.checkStillThere`, once a turn.
    mutating func checkStillThere(_ folder: Folder) throws(DownloadError) {
        if checked?.contains(ObjectIdentifier(folder)) == true { return }
        try folder.checkStillThere()
        checked?.append(ObjectIdentifier(folder))
    }

    /// Removes a folder from the cache, so that the next task opens it again. Returns false if it was not open.
    @discardableResult
    mutating func forget(_ path: String) -> Bool { folders.remove(path) != nil }
}
