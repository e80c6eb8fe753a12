import FKCore
import FKMiddleware

/// The names of files in answers about several of them: the path below the folder of a barrel, so that two files of one name differ, else the
/// last part of the path.
struct BarrelPaths: Sendable {
    private let folders: Set<ExactText>

    /// - Parameter barrels: the barrels whose folders count. One that cannot be read is left out.
    init(_ reader: StoreReader, _ barrels: [String]) {
        folders = Set(
            barrels.compactMap { name in
                let own = try? reader.workPath.options(ofBarrel: name)
                return (own ?? (try? reader.barrel(name))?.options)?.directory.map { ExactText($0) }
            })
    }

    /// The name of the file at an absolute path. Of several folders, the nearest counts.
    func name(of path: String) -> String {
        var folder = path.folderPart
        while folder.utf8.count > 1 {
            if folders.contains(ExactText(folder)), let rest = Places.remainder(of: path, in: folder) { return rest }
            folder = folder.folderPart
        }
        return path.lastPathPart
    }

    /// The name of a task's file, which may not exist yet.
    func name(of record: TaskRecord) -> String {
        let name = DownloadInfo(record).shownName
        return (record.path ?? record.task.directory.map { $0.path(of: name) }).map { self.name(of: $0) } ?? name
    }
}
