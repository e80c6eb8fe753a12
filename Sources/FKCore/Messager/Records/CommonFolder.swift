import FKEngine
import FKMiddleware

/// The folder that the names of a list are relative to: the preferred one, unless a file is elsewhere. Then it is the deepest
/// folder of all files.
package struct CommonFolder {
    private let preferred: String?
    private var path: String?

    /// Creates it without a file.
    ///
    /// - Parameter preferred: nil for the deepest folder.
    package init(_ preferred: String?) { self.preferred = preferred }

    /// The path of the finished file, or the path that it will have as far as that is known.
    package static func place(of record: TaskRecord) -> String {
        if record.state == .complete, let path = record.path { return path }
        let name =
            record.task.fileName ?? FileNameRules.name(url: record.task.url, head: record.response)
        return (record.task.directory ?? "/").path(of: name)
    }

    package mutating func add(_ place: String) {
        var folder = path ?? preferred ?? place.folderPart
        if path == nil, !Self.isBelow(place, folder) { folder = place.folderPart }
        while !Self.isBelow(place, folder) { folder = folder.folderPart }
        path = folder
    }

    /// The name of an added file.
    package func name(of place: String) -> String {
        let base = path ?? "/"
        return String(Substring(place.utf8.dropFirst(base == "/" ? 1 : base.utf8.count + 1)))
    }

    private static func isBelow(_ path: String, _ folder: String) -> Bool {
        path.utf8.starts(with: (folder == "/" ? "/" : folder + "/").utf8)
    }
}
