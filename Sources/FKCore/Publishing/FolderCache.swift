import FKMiddleware

/// The destination folders an engine holds open: opened once, shared by all tasks that go there.
///
/// A folder is found by the bytes of its path: two paths that are canonically equivalent are two folders on Linux. One that
/// was removed or replaced since it was opened is opened again; that is looked at once a second at most.
struct FolderCache {
    /// With more folders than this the cache starts anew, so that descriptors stay bounded.
    static let limit = 64
    /// How long a folder is taken to be in its place, in nanoseconds.
    static let trust: Int64 = 1_000_000_000

    /// With the time (monotonic nanoseconds) at which each was last seen in its place.
    private var folders = ExactMap<(folder: Folder, seen: Int64)>()

    var count: Int { folders.count }

    /// The folder of that path, made with its parents when it is not there.
    ///
    /// - Throws: `.destination` when it cannot be made or opened.
    mutating func folder(_ path: String, now: Int64) throws(DownloadError) -> Folder {
        if let (folder, seen) = folders[path] {
            if now - seen < Self.trust { return folder }
            if folder.isStillThere {
                folders[path] = (folder, now)
                return folder
            }
        }
        let folder = try Folder(path: path)
        if folders.count >= Self.limit { folders.removeAll() }
        folders[path] = (folder, now)
        return folder
    }

    /// The next task that goes there opens the folder anew. Returns false when it was not open.
    @discardableResult
    mutating func forget(_ path: String) -> Bool { folders.remove(path) != nil }
}
