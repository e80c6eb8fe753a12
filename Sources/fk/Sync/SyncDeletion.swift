import FKCore
import FKManifests
import FKMiddleware
import Foundation

/// Deletes what is gone from the source of a barrel, as far as it is provably ours and nobody else's.
///
/// Files in the way of new ones are deleted before the run, and the others after it, if everything was fetched.
struct SyncDeletion {
    let barrel: String
    /// True if the barrel's folder is an OCI layout, which may have other images.
    let isLayout: Bool
    let options: BarrelSyncOptions
    let comparison: SourceComparison
    let client: EngineClient
    let context: CommandContext

    /// True if more is gone than may be deleted.
    var isTooMuch: Bool {
        let count = comparison.number(.gone)
        return options.deletes && count > 0 && !options.limit.allows(count, of: comparison.members)
    }

    /// True if what is gone may be deleted, or if nothing is to be deleted. It says what is too much.
    func isAllowed() -> Bool {
        guard isTooMuch else { return true }
        context.errors.writeLine(
            "fk: \(barrel): \(comparison.number(.gone)) of \(comparison.members.plural("file")) are gone from the source, "
                + "which is more than --max-delete \(options.limit) allows: nothing was deleted.")
        return false
    }

    /// Deletes the files that are in the way of new ones: a file cannot come where a folder is, nor below a file.
    ///
    /// - Returns: the files that it has decided about.
    func makeRoom() async throws -> Set<TaskID> {
        guard options.deletes else { return [] }
        let files = isTooMuch ? [] : comparison.inTheWay
        try await delete(files, makesRoom: true)
        for file in comparison.files(.new) + comparison.files(.changed) {
            let path = "\(comparison.folder)/\(file.name)"
            if Self.isFolder(path) { _ = Self.removeEmpty(path) }
        }
        return Set(files.map(\.id))
    }

    /// Deletes the files that are gone, or only prints them.
    ///
    /// - Parameters:
    ///   - early: the files that ``makeRoom()`` has decided about.
    ///   - isFetched: false if a file could not be fetched, so that nothing more is deleted.
    func deleteRest(after early: Set<TaskID>, isFetched: Bool) async throws {
        let gone = comparison.files(.gone).filter { !early.contains($0.id) }
        let mayDelete = options.deletes && !isTooMuch
        if mayDelete, isFetched {
            try await delete(gone, except: isLayout ? OCILayout.used(in: comparison.folder) : [])
            return
        }
        if mayDelete, !gone.isEmpty {
            context.warn("\(barrel): nothing more was deleted, because not every file could be fetched.")
        }
        for file in gone { comparison.print(file) }
    }

    /// Deletes files, and names those that stay.
    ///
    /// - Parameters:
    ///   - used: the names of files that other images need. The default is none.
    ///   - makesRoom: true also removes the folders that are empty then, for new files of their names. The default is false.
    private func delete(
        _ gone: [SourceComparison.File], except used: Set<ExactText> = [], makesRoom: Bool = false
    ) async throws {
        guard !gone.isEmpty else { return }
        let reader = try context.global.openReader()
        var records: [TaskID: TaskRecord] = [:]
        for record in reader.records(gone.map(\.id)) { records[record.id] = record }
        var users = try otherUsers(of: records, reader)
        for file in gone where used.contains(ExactText(file.name)) { users[file.id] = "another image of the folder" }
        var deleted: [SourceComparison.File] = []
        var left: [SourceComparison.File] = []
        let root = EntryFolders.resolved(comparison.folder)
        for file in gone {
            guard let record = records[file.id] else { continue }
            guard let reason = Self.reasonToStay(record.ofFinished, below: root, user: users[file.id]) else {
                deleted.append(file)
                continue
            }
            comparison.print(file)
            context.warn("\(file.name) is gone from the source and stays here: \(reason).")
            left.append(file)
        }
        if !left.isEmpty {
            _ = try await client.perform(.removeFromBarrel(name: barrel, urls: left.map(\.id.hex)))
        }
        guard !deleted.isEmpty else { return }
        try confirm(deleted)
        let (reply, problems) = try await client.perform(.chosen(deleted.map(\.id), .trash))
        Answers(context).warn(problems)
        if case .failed(let error) = reply { throw error }
        for file in deleted {
            let path = records[file.id]?.ofFinished.path
            let isThere = path.map { $0.existsOnDisk } ?? false
            comparison.print(file, as: isThere ? "gone" : "deleted")
            if makesRoom, !isThere, let path { Self.removeEmptyFolders(above: path, of: file.name) }
        }
    }

    /// Why a file is not deleted; nil if it is. The engine looks again when it deletes.
    ///
    /// - Parameter root: the barrel's folder with its symbolic links resolved.
    private static func reasonToStay(_ record: TaskRecord, below root: String, user: String?) -> String? {
        if let user { return "\(user) has it too" }
        if let path = record.path,
            !Paths.isBelow(EntryFolders.resolved(path.folderPart).path(of: path.lastPathPart), root)
        {
            return "a symbolic link leads out of the barrel's folder to it"
        }
        switch record.path.map({ record.claim($0) }) ?? .gone {
        case .ours, .gone: return nil
        case .oursEdited: return "it was changed after fk wrote it"
        case .foreign: return "fk did not write it"
        }
    }

    /// Asks the person, unless `--yes` was given.
    private func confirm(_ files: [SourceComparison.File]) throws {
        guard !options.isConfirmed else { return }
        let verb = files.count == 1 ? "is" : "are"
        guard
            try Confirmation(context).ask("Delete \(files.count.plural("file")) that \(verb) gone from the source?")
        else {
            for file in files { comparison.print(file) }
            throw CommandFailure("Nothing was deleted.", status: ExitStatus.taskFailed)
        }
    }

    /// The gone files that something else uses: another barrel, or a task for which the same file counts.
    private func otherUsers(of gone: [TaskID: TaskRecord], _ reader: StoreReader) throws -> [TaskID: String] {
        var users: [TaskID: String] = [:]
        var places = ExactText.Map<TaskID>()
        for (id, record) in gone {
            if let other = record.barrels.first(where: { !$0.isExactly(barrel) }) {
                users[id] = "the barrel \(other)"
            } else if let path = record.path {
                places[path] = id
            }
        }
        let others = try reader.recordsOfForeignFiles { record in
            gone[record.id] == nil && record.path.map { places[$0] != nil } ?? false
        }
        for record in others {
            guard let id = record.path.flatMap({ places[$0] }) else { continue }
            users[id] = record.barrels.first.map { "the barrel \($0)" } ?? "the task \(record.id.short)"
        }
        return users
    }

    // MARK: Empty folders

    private static func isFolder(_ path: String) -> Bool {
        var status = stat()
        return lstat(path, &status) == 0 && status.st_mode & S_IFMT == S_IFDIR
    }

    /// Removes a folder that has nothing but empty folders in it.
    private static func removeEmpty(_ path: String) -> Bool {
        for name in (try? FileIO.names(in: path)) ?? [] {
            guard isFolder("\(path)/\(name)"), removeEmpty("\(path)/\(name)") else { return false }
        }
        return rmdir(path) == 0
    }

    /// Removes the folders of a deleted file that are empty now, up to the barrel's.
    private static func removeEmptyFolders(above path: String, of name: String) {
        var folder = path.folderPart
        for _ in SourceComparison.folders(of: name) {
            guard rmdir(folder) == 0 else { return }
            folder = folder.folderPart
        }
    }
}
