import FKMiddleware
import Foundation

/// Whether the files of a barrel are there (`Barrel.state`).
public enum BarrelState: Sendable, Hashable {
    /// There is no file, or the published folder is gone.
    case absent
    /// Some files are missing or have another length.
    case partial
    /// All files are there. Sets with the same names and contents have the same version.
    case ready(version: String)
    /// A whole set is there, but it may not be the newest one: a member has changed, joined or left, or times differ from those of the
    /// set, as after a restore from a backup. Publish the barrel again; files with the right digests are kept.
    case stale
}

/// The folder that a barrel was published to, with its hidden folders beside it.
///
/// ```text
/// DIR                             the set, with its mark
/// .<token>.<random>.fkset         the new set before the exchange, and the old one after it
/// .<token>.<random>.fkset-old     the old set, on file systems without exchange
/// ```
///
/// | the process ends | DIR is | what is left |
/// | --- | --- | --- |
/// | before the exchange | as it was | an unfinished set |
/// | after it | the new set | the old set |
/// | between the two renames, without exchange | missing | the old set, which gets its name back |
struct PublishedSet {
    var folder: String
    let token: String
    /// Called before each change on disk. Tests end the work there.
    var step: () throws -> Void = {}
    /// Called with each file that is deleted, as it was.
    var onRemoval: (stat) -> Void = { _ in }
    /// Called with the path of each file of others that stays hidden.
    var onHidden: (String) -> Void = { _ in }
    /// The inodes of the files of others to which the new set has links, by their names.
    var kept: [String: UInt64] = [:]

    var parent: String { folder.folderPart }

    static let (suffix, oldSuffix) = (".fkset", ".fkset-old")

    /// A new hidden name beside the folder.
    func hidden(_ suffix: String) -> String {
        parent.path(of: ".\(token).\(String(UInt32.random(in: 0 ... .max), radix: 16))\(suffix)")
    }

    /// The hidden folders that are left.
    func leftovers() throws -> [String] {
        let prefix = ".\(token)."
        return try FileIO.names(in: parent).filter {
            $0.utf8.starts(with: prefix.utf8) && ($0.hasSuffix(Self.suffix) || $0.hasSuffix(Self.oldSuffix))
        }.sorted()
    }

    /// Removes what a killed process has left, and an old set that nobody reads any more.
    ///
    /// - Returns: false if something stays.
    func sweep() throws -> Bool {
        var isClean = true
        // An old set that gets its name back comes first: what is of others in an unfinished set is compared with it.
        let names = try leftovers()
        for name in names.filter({ $0.hasSuffix(Self.oldSuffix) }) + names.filter({ $0.hasSuffix(Self.suffix) }) {
            let path = parent.path(of: name)
            if name.hasSuffix(Self.oldSuffix), LostFile.isGone(folder), SetMark(in: path) != nil {
                try step()
                try FileIO.rename(path, to: folder)
            } else if try !remove(path) {
                isClean = false
            }
        }
        return isClean
    }

    /// Removes an unfinished or old set. Files that are not of the set are moved to the present one.
    ///
    /// - Returns: false if it stays: it is in use, or has a file that cannot be moved.
    func remove(_ path: String) throws -> Bool {
        guard let mark = SetMark(in: path) else {
            // Nothing but our files and links is in an unfinished set.
            try removeUnfinished(path)
            return true
        }
        let lock = try FileIO.open(path.path(of: SetMark.fileName), O_RDWR)
        defer { FileLock.release(lock) }
        if flock(lock, LOCK_EX | LOCK_NB) != 0, errno == EWOULDBLOCK { return false }
        let files = Dictionary(mark.files.map { ($0.name, $0) }, uniquingKeysWith: { first, _ in first })
        var isEmpty = true
        var hidden: [String] = []
        for (name, status) in try removableEntries(below: path) where name != SetMark.fileName {
            let (old, new) = (path.path(of: name), folder.path(of: name))
            if status.st_mode & S_IFMT == S_IFDIR {
                try step()
                if rmdir(old) != 0 { isEmpty = false }
                continue
            }
            var present = stat()
            let isKept = lstat(new, &present) == 0 && present.st_ino == status.st_ino && present.st_dev == status.st_dev
            if isKept
                || files[name].map({ $0.isOurs(old, mayBeTorn: mark.mayBeTorn) || SetFile.isEqual(old, new) }) == true
            {
                try delete(old)
            } else if try !move(name, from: path) {
                hidden.append(old)
                isEmpty = false
            }
        }
        guard isEmpty else {
            // Files of others came into a set in the moment in which it was withdrawn.
            guard LostFile.isGone(folder) else {
                hidden.forEach(onHidden)
                return false
            }
            try step()
            try FileIO.rename(path, to: folder)
            return true
        }
        try step()
        try FileIO.remove(path.path(of: SetMark.fileName))
        try step()
        return rmdir(path) == 0
    }

    /// Moves a file that came into the old set in its last moment. Its name in the new set has to be free, or to be that of the file that it has
    /// replaced meanwhile.
    private func move(_ name: String, from path: String) throws -> Bool {
        guard SetMark(in: folder) != nil else { return false }
        try SetFile.makeFolders(of: name, below: folder, step)
        try step()
        let (old, new) = (path.path(of: name), folder.path(of: name))
        guard link(old, new) == 0 else {
            var present = stat()
            guard errno == EEXIST, lstat(new, &present) == 0, kept[name] == UInt64(present.st_ino) else { return false }
            return rename(old, new) == 0
        }
        try step()
        return unlink(old) == 0
    }

    private func delete(_ path: String) throws {
        var status = stat()
        let isThere = lstat(path, &status) == 0
        try step()
        if try FileIO.remove(path), isThere { onRemoval(status) }
    }

    /// The entries of a hidden folder, those in a folder before it. Its folders let their owner delete files.
    private func removableEntries(below path: String) throws -> [(name: String, status: stat)] {
        let entries = try SetFile.entries(below: path)
        for (name, status) in entries where status.st_mode & S_IFMT == S_IFDIR && status.st_mode & 0o700 != 0o700 {
            _ = chmod(path.path(of: name), status.st_mode & 0o7777 | 0o700)
        }
        return entries.reversed()
    }

    private func removeUnfinished(_ path: String) throws {
        for (name, status) in try removableEntries(below: path) {
            if status.st_mode & S_IFMT == S_IFDIR {
                try step()
                rmdir(path.path(of: name))
            } else {
                try delete(path.path(of: name))
            }
        }
        try step()
        guard rmdir(path) == 0 || errno == ENOENT else { throw DownloadError(system: errno, "remove", path) }
    }
}

/// The published sets of a work path.
package enum PublishedSets {
    /// Removes what killed processes have left, and old sets that nobody reads any more. Sets that are being published are left out.
    ///
    /// - Parameter onRemoval: called with each file that is deleted, as it was.
    /// - Returns: why something could not be removed.
    @discardableResult
    package static func sweep(
        _ workPath: WorkPath, onRemoval: @escaping (stat) -> Void = { _ in }
    ) -> [DownloadError] {
        guard access(workPath.setsFolder, F_OK) == 0 else { return [] }
        var problems: [DownloadError] = []
        do {
            for file in try FileIO.names(in: workPath.setsFolder) where file.hasSuffix(".set") {
                let path = workPath.setsFolder.path(of: file)
                guard let bytes = try? FileIO.contents(of: path, limit: 1 << 20),
                    let record = try? StoreJSON.decode(SetRecord.self, from: bytes), !record.pending.isEmpty
                else { continue }
                do {
                    try FileLock.exclusively(workPath.setLockPath(record.barrel), waiting: 0) {
                        guard var record = try SetRecord(record.barrel, in: workPath) else { return }
                        let set = PublishedSet(folder: "", token: record.token, onRemoval: onRemoval)
                        let left = try left(of: record, like: set)
                        guard left != record.pending else { return }
                        record.pending = left
                        try record.writeWithoutUse(in: workPath)
                    }
                } catch let error as DownloadError where error.code != .workPathBusy {
                    problems.append(error)
                } catch {}
            }
        } catch {
            problems.append(
                DownloadError(wrapping: error, code: .disk, message: "\(workPath.setsFolder) cannot be listed."))
        }
        return problems
    }

    /// Removes what is left beside the folders of a record. The caller holds its lock.
    ///
    /// - Parameter set: what is called meanwhile; its folder does not count.
    /// - Returns: the folders beside which something stays.
    static func left(of record: SetRecord, like set: PublishedSet) throws -> [String] {
        var set = set
        return try record.pending.filter { folder in
            set.folder = folder
            return try !set.sweep()
        }
    }

    /// The state of a barrel's set, by the mark and the lengths and times of its files. No file is read.
    ///
    /// - Parameter known: the members as the engine has them; nil, the default, reads them.
    package static func state(of barrel: String, in workPath: WorkPath, known: SetMembers.Known? = nil) -> BarrelState {
        let members = try? SetMembers(barrel, in: workPath, known: known)
        let folder = (try? SetRecord(barrel, in: workPath)).flatMap { record in
            record?.folder.map { (path: $0, token: record?.token) }
        }
        guard let folder else { return members?.state ?? .absent }
        guard let mark = SetMark(in: folder.path), mark.token == folder.token else { return .absent }
        var isStale = mark.mayBeTorn
        for file in mark.files {
            var status = stat()
            guard lstat(folder.path.path(of: file.name), &status) == 0, status.st_mode & S_IFMT == S_IFREG,
                Int64(status.st_size) == file.length
            else { return .partial }
            if !file.matches(status) { isStale = true }
        }
        // A barrel without members, or one that is gone, asks for nothing else.
        if let members, members.total > 0, members.missing > 0 || members.version != mark.version { isStale = true }
        return isStale ? .stale : .ready(version: mark.version)
    }
}
