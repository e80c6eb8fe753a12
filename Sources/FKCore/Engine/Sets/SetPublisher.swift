import FKMiddleware
import Foundation

/// What publishing has done.
public struct PublishedFiles: Sendable, Hashable {
    /// The version of the set (`BarrelState.ready(version:)`).
    public var version: String
    /// False if the folder had this version already.
    public var isChanged = false
    /// The number of files in the set.
    public var total = 0
    /// Files that share their blocks with those of the members.
    public var cloned = 0
    /// Files that are those of the members, by another name.
    public var linked = 0
    /// Files of the old set that the new one has as well.
    public var reused = 0
    /// Files whose bytes were copied.
    public var copied = 0
    /// Files of others in the folder, which the new set has as well.
    public var kept = 0
    /// False while the old set is still being read (`Barrel.withFiles`). It is removed later.
    public var isOldRemoved = true
    /// The files of others in the old set, by their hidden paths, that could not be moved to the new one.
    package var hidden: [String] = []
    /// The folder that the barrel was published to before, if its set is still there.
    package var formerFolder: String?
    /// The files that have other names than in the old set, because the folder that names are relative to is another one.
    package var renamed: [Renamed] = []
    /// The folder that the names are relative to; nil without one.
    package var base: String?

    /// A file whose name has changed.
    package struct Renamed: Sendable, Hashable {
        package var old: String
        package var new: String
    }

    init(version: String) { self.version = version }
}

/// Publishes the finished files of a barrel as a folder that appears as a whole.
///
/// ```text
/// members are complete -> leftovers are removed -> a hidden folder beside DIR
///   -> each file: link of the old set, clone, link or copy -> links to the files of others in DIR -> the mark
///   -> one rename, or an exchange with the old set -> the old set is removed
/// ```
///
/// What is at DIR decides:
///
/// | DIR | what happens |
/// | --- | --- |
/// | nothing, an empty folder | the set gets the name |
/// | a set of this barrel | exchanged |
/// | a file of others in such a set | the new set has it as well; without links, or if the set has a file of that name, refused |
/// | a file of the set that was changed | refused |
/// | anything else: another folder, a file, a symbolic link | refused |
package struct SetPublisher {
    private let workPath: WorkPath
    private let barrel: String
    private let durability: Configure.Durability
    /// Called before each change on disk. Tests throw here, as if the process was killed: nothing is cleaned up then.
    private let step: () throws -> Void
    /// False exchanges by two renames, as on file systems without another way.
    private let canExchange: Bool

    /// Stands for the end of the process.
    package struct Killed: Error {
        package init() {}
    }

    /// - Parameter step: called before each change on disk; the default does nothing.
    package init(
        _ barrel: String, in workPath: WorkPath, durability: Configure.Durability,
        step: @escaping () throws -> Void = {}
    ) {
        self.init(barrel, in: workPath, durability: durability, canExchange: true, step: step)
    }

    init(
        _ barrel: String, in workPath: WorkPath, durability: Configure.Durability, canExchange: Bool,
        step: @escaping () throws -> Void
    ) {
        (self.barrel, self.workPath, self.durability) = (barrel, workPath, durability)
        (self.canExchange, self.step) = (canExchange, step)
    }

    /// Publishes.
    ///
    /// - Parameters:
    ///   - folder: an absolute path.
    ///   - known: the members as the engine has them; nil, the default, reads them.
    /// - Throws: `.incompleteBody` if a member has no finished file, `.notFound` for a barrel that is gone or empty, `.fileExists` for a
    ///   folder or file of others, `.workPathBusy` while another process publishes the barrel; `.noSpace`, `.destination` or `.disk`.
    package func publish(to folder: String, known: SetMembers.Known? = nil) throws -> PublishedFiles {
        let folder = folder.count > 1 && folder.hasSuffix("/") ? String(folder.dropLast()) : folder
        guard folder.utf8.count > 1, Places.remainder(of: folder, in: workPath.root) == nil,
            Places.remainder(of: workPath.root, in: folder) == nil
        else {
            throw DownloadError(
                .destination,
                "The folder \(folder) cannot be a set: it has the work path, or is in it. Choose another folder.")
        }
        var status = stat()
        guard lstat(folder, &status) != 0 || status.st_mode & S_IFMT != S_IFLNK else {
            throw DownloadError(
                .fileExists,
                "\(folder) is a symbolic link, so the barrel \(barrel) was not published: name the folder itself.")
        }
        let members = try SetMembers(barrel, in: workPath, known: known)
        try members.check()
        try FileIO.makeFolder(workPath.setsFolder)
        do {
            return try FileLock.exclusively(workPath.setLockPath(barrel), waiting: 0) {
                try publish(members, to: folder)
            }
        } catch let error as DownloadError where error.code == .workPathBusy {
            throw DownloadError(
                .workPathBusy, "Another process is publishing the barrel \(barrel): try again when it has ended.",
                isRetryable: true)
        }
    }

    private func publish(_ members: SetMembers, to folder: String) throws -> PublishedFiles {
        let known = try SetRecord(barrel, in: workPath)
        var record = known ?? SetRecord(barrel: barrel)
        var set = PublishedSet(folder: folder, token: record.token, step: step)
        record.pending = try PublishedSets.left(of: record, like: set)
        let old = try present(set)
        var result = PublishedFiles(version: members.version)
        result.total = members.total
        result.base = members.base
        if let former = known?.folder, !former.isExactly(folder), SetMark(in: former)?.token == record.token {
            result.formerFolder = former
        }
        if let old, old.version == members.version, !old.mayBeTorn, try isUntouched(old, folder) {
            if record.folder != folder {
                record.folder = folder
                try record.write(in: workPath)
            }
            PublishedSets.markUsed(barrel, in: workPath)
            return result
        }
        // It stays there until the next engine has looked for leftovers: each write is synced.
        if !record.pending.contains(where: { $0.isExactly(folder) }) { record.pending.append(folder) }
        record.folder = record.folder ?? folder
        if record != known {
            try step()
            try record.write(in: workPath)
        }
        do {
            let staging = set.hidden(PublishedSet.suffix)
            set.kept = try stage(members, in: staging, of: set, old, &result)
            result.kept = set.kept.count
            try show(staging, of: set, replaces: old != nil)
        } catch {
            if !(error is Killed) {
                record.folder = known?.folder
                record.pending = (try? PublishedSets.left(of: record, like: set)) ?? record.pending
                try? record.write(in: workPath)
            }
            throw error
        }
        result.isChanged = true
        result.renamed = old.map { Self.renamed(from: $0, to: members) } ?? []
        if record.folder != folder {
            record.folder = folder
            try step()
            try record.write(in: workPath)
        }
        PublishedSets.markUsed(barrel, in: workPath)
        // The set is there: what cannot be removed now goes at the next run.
        var hidden: [String] = []
        set.onHidden = { hidden.append($0) }
        do {
            result.isOldRemoved = try !PublishedSets.left(of: record, like: set).contains { $0.isExactly(folder) }
        } catch {
            if error is Killed { throw error }
            result.isOldRemoved = false
        }
        result.hidden = hidden
        return result
    }

    /// The files of the old set whose paths have become longer or shorter at their beginning.
    private static func renamed(from old: SetMark, to members: SetMembers) -> [PublishedFiles.Renamed] {
        let names = Dictionary(old.files.map { ($0.content, $0.name) }, uniquingKeysWith: { first, _ in first })
        return members.files.compactMap { member in
            guard let name = names[member.content],
                member.name.hasSuffix("/" + name) || name.hasSuffix("/" + member.name)
            else { return nil }
            return .init(old: name, new: member.name)
        }
    }

    // MARK: What is there

    /// The mark of the set that is at the folder; nil if the name is free.
    private func present(_ set: PublishedSet) throws -> SetMark? {
        var status = stat()
        guard lstat(set.folder, &status) == 0 else {
            guard errno == ENOENT else { throw DownloadError(system: errno, "look at", set.folder, in: .destination) }
            var path = set.parent
            var missing: [String] = []
            while LostFile.isGone(path), path.utf8.count > 1 {
                missing.append(path)
                path = path.folderPart
            }
            for folder in missing.reversed() { try FileIO.makeOuterFolder(folder) }
            return nil
        }
        if status.st_mode & S_IFMT == S_IFDIR {
            if let mark = SetMark(in: set.folder), mark.token == set.token { return mark }
            var isEmpty = true
            try FileIO.forEachName(in: set.folder) { _ in
                isEmpty = false
                return false
            }
            if isEmpty {
                guard let obstacle = FileIO.obstacle(toReplacing: set.folder) else { return nil }
                throw cannotBeSet(set.folder, obstacle)
            }
        }
        throw DownloadError(
            .fileExists,
            "\(set.folder) exists and is no published set of the barrel \(barrel), so nothing was changed: choose another folder, "
                + "or move it away.")
    }

    /// True if all files of a set are as they were left.
    private func isUntouched(_ mark: SetMark, _ folder: String) throws -> Bool {
        mark.files.allSatisfy { file in
            var status = stat()
            return lstat(folder.path(of: file.name), &status) == 0 && file.matches(status)
        }
    }

    // MARK: Staging

    /// Makes the hidden folder of a new set.
    private func makeStaging(_ staging: String, of set: PublishedSet, replaces: Bool) throws {
        try step()
        guard mkdir(staging, 0o777) == 0 else {
            throw DownloadError(system: errno, "create", staging, in: .destination)
        }
        FileIO.copyAccess(of: set.folder, to: staging)
        let former = replaces ? FolderAttributes.present(of: set.folder) : nil
        FolderAttributes.set(FolderAttributes.wantedOfSet(replacing: former, on: .current), of: staging)
    }

    /// Makes a new set.
    ///
    /// - Returns: the result of `keepOthers`.
    private func stage(
        _ members: SetMembers, in staging: String, of set: PublishedSet, _ old: SetMark?, _ result: inout PublishedFiles
    ) throws -> [String: UInt64] {
        try makeStaging(staging, of: set, replaces: old != nil)
        // A power cut may have taken bytes that were not synced.
        let proven = old.flatMap {
            $0.mayBeTorn ? nil : Dictionary($0.files.map { ($0.content, $0.name) }, uniquingKeysWith: { a, _ in a })
        }
        let oldFiles = Dictionary((old?.files ?? []).map { ($0.name, $0) }, uniquingKeysWith: { a, _ in a })
        var files: [SetMark.File] = []
        var withoutClones: Set<UInt64> = []
        for member in members.files {
            try SetFile.makeFolders(of: member.name, below: staging, step)
            let target = staging.path(of: member.name)
            try step()
            if let name = proven?[member.content], let file = oldFiles[name],
                reuse(file, at: set.folder.path(of: name), as: target)
            {
                result.reused += 1
            } else {
                switch try bring(member, to: target, &withoutClones) {
                case .cloned: result.cloned += 1
                case .linked: result.linked += 1
                case .reused: result.reused += 1
                case .copied: result.copied += 1
                }
            }
            guard let identity = FileIdentity(path: target), identity.length == member.length else {
                throw changed(member)
            }
            files.append(
                SetMark.File(name: member.name, length: identity.length, time: identity.time, content: member.content))
        }
        var kept: [String: UInt64] = [:]
        if let old {
            kept = try keepOthers(
                set, oldFiles, mayBeTorn: old.mayBeTorn, in: staging, Set(files.map { ExactText($0.name) }))
        }
        let isSynced = durability == .power
        if isSynced {
            for (name, status) in try SetFile.entries(below: staging) where status.st_mode & S_IFMT != S_IFLNK {
                try FileIO.synchronize(staging.path(of: name))
            }
        }
        try step()
        try SetMark(token: set.token, barrel: barrel, files: files, boot: isSynced ? nil : BootID.current)
            .write(in: staging)
        if isSynced { try FileIO.synchronize(staging) }
        return kept
    }

    private func reuse(_ file: SetMark.File, at path: String, as target: String) -> Bool {
        var status = stat()
        guard lstat(path, &status) == 0, file.matches(status) else { return false }
        return link(path, target) == 0
    }

    /// Brings the file of a member. It is the one that the record describes, by its identity, else by its digest.
    ///
    /// - Parameter withoutClones: the file systems that have not cloned a file. They are asked once, because each question makes a file
    ///   and removes it again.
    private func bring(
        _ member: SetMembers.Member, to target: String, _ withoutClones: inout Set<UInt64>
    ) throws -> SetFile.Way {
        let isOurs = member.record.isForeign != true && member.record.claim(member.path) == .ours
        if !isOurs, FileVerifier(workPath).verify(member.record).result != .right { throw changed(member) }
        let path = member.record.isForeign == true ? resolved(member.path) : member.path
        let source = try FileIO.open(path, O_RDONLY, isOwn: false)
        defer { FileIO.close(source) }
        var status = stat()
        guard fstat(source, &status) == 0 else { throw DownloadError(system: errno, "read", path) }
        let device = UInt64(truncatingIfNeeded: status.st_dev)
        if !withoutClones.contains(device) {
            if try SetFile.duplicate(source, status, from: path, to: target, nil, mayCopy: false) != nil {
                return .cloned
            }
            withoutClones.insert(device)
        }
        var linked = stat()
        if isOurs, link(path, target) == 0 {
            guard lstat(target, &linked) == 0, linked.st_ino == status.st_ino else { throw changed(member) }
            return .linked
        }
        let digest = member.record.fileDigest
        let digester = digest.map { Digester($0.algorithm, length: Int64(status.st_size)) }
        _ = try SetFile.duplicate(source, status, from: path, to: target, digester, mayCopy: true)
        var now = stat()
        guard fstat(source, &now) == 0, now.modificationTime == status.modificationTime,
            digester?.hex() == digest?.hex
        else { throw changed(member) }
        return .copied
    }

    private func resolved(_ path: String) -> String {
        guard let real = realpath(path, nil) else { return path }
        defer { free(real) }
        return String(cString: real)
    }

    private func changed(_ member: SetMembers.Member) -> DownloadError {
        DownloadError(
            .checksumMismatch,
            "\(member.path) is not as it was downloaded, so the barrel \(barrel) was not published: verify and repair it, or download it "
                + "again.", url: member.record.task.url)
    }

    /// The folders of files, by their paths.
    private static func folders(of names: some Sequence<String>) -> Set<ExactText> {
        var folders: Set<ExactText> = []
        for name in names {
            var folder = name.folderPart
            while !folder.isEmpty, folders.insert(ExactText(folder)).inserted { folder = folder.folderPart }
        }
        return folders
    }

    /// Makes links to the files in the old set's folder that are not the set's, so that no moment is without them. Folders keep their owners and
    /// modes, and those of others their times.
    ///
    /// - Returns: the inodes of these files by their names.
    private func keepOthers(
        _ set: PublishedSet, _ old: [String: SetMark.File], mayBeTorn: Bool, in staging: String, _ new: Set<ExactText>
    ) throws -> [String: UInt64] {
        var kept: [String: UInt64] = [:]
        let folders = Self.folders(of: old.keys)
        let entries = try SetFile.entries(below: set.folder)
        for (name, status) in entries where name != SetMark.fileName {
            let (path, target) = (set.folder.path(of: name), staging.path(of: name))
            if status.st_mode & S_IFMT == S_IFDIR {
                // A folder that only the old set had goes with it.
                if !folders.contains(ExactText(name)), LostFile.isGone(target) {
                    try SetFile.makeFolders(of: name, below: staging, step)
                    try step()
                    try FileIO.makeFolder(target)
                }
                continue
            }
            if let file = old[name] {
                if file.isOurs(path, mayBeTorn: mayBeTorn) || SetFile.isEqual(path, target) { continue }
                throw refused(path, "was changed by another program")
            }
            if new.contains(ExactText(name)) || !LostFile.isGone(target) {
                throw refused(path, "is not of the set, and the new set has a file of that name")
            }
            try SetFile.makeFolders(of: name, below: staging, step)
            try step()
            guard link(path, target) == 0 else {
                throw refused(path, "is not of the set, and cannot be kept: \(String(cString: strerror(errno)))")
            }
            var linked = stat()
            kept[name] = UInt64(lstat(target, &linked) == 0 ? linked.st_ino : status.st_ino)
        }
        // The deepest first: the mode of a folder may not let files into it.
        for (name, status) in entries.reversed() where status.st_mode & S_IFMT == S_IFDIR {
            try copyAccess(of: name, status, of: set, to: staging, isOwn: folders.contains(ExactText(name)))
        }
        return kept
    }

    /// Gives a folder in a new set the owner and the mode that it has in the old one; one of others gets its time, too.
    private func copyAccess(
        of name: String, _ status: stat, of set: PublishedSet, to staging: String, isOwn: Bool
    ) throws {
        let (path, target) = (set.folder.path(of: name), staging.path(of: name))
        var made = stat()
        guard lstat(target, &made) == 0, made.st_mode & S_IFMT == S_IFDIR else {
            if isOwn { return }
            throw refused(path, "is not of the set, and the new set has a file of that name")
        }
        if made.st_uid != status.st_uid || made.st_gid != status.st_gid,
            lchown(target, status.st_uid, status.st_gid) != 0
        {
            if isOwn { return }
            throw refused(path, "is not of the set, and its owner cannot be kept: \(String(cString: strerror(errno)))")
        }
        _ = chmod(target, status.st_mode & 0o7777)
        if !isOwn { SetFile.setTime(of: target, status.modificationTime) }
    }

    private func refused(_ path: String, _ reason: String) -> DownloadError {
        DownloadError(.fileExists, "\(path) \(reason), so the barrel \(barrel) was not published: move the file away.")
    }

    // MARK: Showing

    private func show(_ staging: String, of set: PublishedSet, replaces: Bool) throws {
        try step()
        if !replaces {
            // It replaces an empty folder; one that is not empty any more stays.
            guard rename(staging, set.folder) == 0 else {
                throw notShown(errno, "rename \(staging) to", set.folder)
            }
        } else {
            let code = canExchange ? SetFile.exchange(staging, set.folder) : ENOSYS
            if SetFile.withoutExchange.contains(code) {
                let former = set.hidden(PublishedSet.oldSuffix)
                try FileIO.rename(set.folder, to: former)
                try step()
                do {
                    try FileIO.rename(staging, to: set.folder)
                } catch {
                    try? FileIO.rename(former, to: set.folder)
                    throw error
                }
            } else if code != 0 {
                throw notShown(code, "exchange \(staging) with", set.folder)
            }
        }
        if durability == .power { try FileIO.synchronize(set.parent) }
    }

    private func notShown(_ code: Int32, _ action: String, _ folder: String) -> DownloadError {
        code == EBUSY
            ? cannotBeSet(folder, FileIO.mounted)
            : DownloadError(system: code, action, folder, in: .destination)
    }

    private func cannotBeSet(_ folder: String, _ obstacle: String) -> DownloadError {
        DownloadError(
            .destination,
            "\(folder) cannot be a set: \(obstacle), and a set appears by a rename. Choose a folder below it.")
    }

    // MARK: Withdrawing

    /// Deletes the published set. Its folder gets a hidden name first, so that it shows the whole set or none of it, and what a kill leaves is
    /// deleted later. Files of others stay in the folder, with the mark: the set can be published there again.
    ///
    /// - Parameter onRemoval: called with each file that is deleted, as it was.
    /// - Returns: false if the set is in use or is being published.
    /// - Throws: why it stays, or stays hidden.
    func withdraw(_ onRemoval: @escaping (stat) -> Void = { _ in }) throws -> Bool {
        do {
            return try FileLock.exclusively(workPath.setLockPath(barrel), waiting: 0) { try withdrawNow(onRemoval) }
        } catch let error as DownloadError where error.code == .workPathBusy {
            return false
        }
    }

    private func withdrawNow(_ onRemoval: @escaping (stat) -> Void) throws -> Bool {
        guard var record = try SetRecord(barrel, in: workPath), let named = record.folder,
            let mark = SetMark(in: named), mark.token == record.token
        else { return true }
        // The folder may have been moved, with a symbolic link in its place.
        let folder = resolved(named)
        var set = PublishedSet(folder: folder, token: record.token, step: step, onRemoval: onRemoval)
        let hidden = set.hidden(PublishedSet.suffix)
        let lock = try FileIO.open(folder.path(of: SetMark.fileName), O_RDWR)
        do {
            defer { FileLock.release(lock) }
            if flock(lock, LOCK_EX | LOCK_NB) != 0, errno == EWOULDBLOCK { return false }
            set.kept = try hide(set, as: hidden, mark, &record)
        }
        _ = try PublishedSets.left(of: record, like: set)
        if LostFile.isGone(hidden) { return true }
        throw DownloadError(
            .disk,
            "Its files are in \(hidden) now, because they are being read, or another program has written there. "
                + "The next trim tries again.")
    }

    /// Gives the folder of a set a hidden name. If it has files of others, a folder with those and the mark takes its place.
    ///
    /// - Returns: the result of `keepOthers`.
    private func hide(
        _ set: PublishedSet, as hidden: String, _ mark: SetMark, _ record: inout SetRecord
    ) throws -> [String: UInt64] {
        let files = mark.files.filter { $0.isOurs(set.folder.path(of: $0.name), mayBeTorn: mark.mayBeTorn) }
        let folders = Self.folders(of: files.map(\.name))
        for inner in [""] + folders.map(\.text) {
            let path = inner.isEmpty ? set.folder : set.folder.path(of: inner)
            guard access(path, W_OK | X_OK) == 0 else { throw DownloadError(system: errno, "delete files in", path) }
        }
        if !record.pending.contains(where: { $0.isExactly(set.folder) }) {
            record.pending.append(set.folder)
            try step()
            try record.writeWithoutUse(in: workPath)
        }
        let own = folders.union(files.map { ExactText($0.name) } + [ExactText(SetMark.fileName)])
        guard try SetFile.entries(below: set.folder).contains(where: { !own.contains(ExactText($0.name)) }) else {
            try step()
            try FileIO.rename(set.folder, to: hidden)
            return [:]
        }
        do {
            try makeStaging(hidden, of: set, replaces: true)
            let names = Dictionary(files.map { ($0.name, $0) }, uniquingKeysWith: { first, _ in first })
            let kept = try keepOthers(set, names, mayBeTorn: mark.mayBeTorn, in: hidden, [])
            try step()
            try mark.write(in: hidden)
            try show(hidden, of: set, replaces: true)
            return kept
        } catch {
            if !(error is Killed) { _ = try? set.sweep() }
            throw error
        }
    }
}

extension WorkPath {
    /// Publishes the finished set of a barrel (`SetPublisher.publish`).
    package func publish(
        _ barrel: String, to folder: String, durability: Configure.Durability, known: SetMembers.Known? = nil
    ) throws -> PublishedFiles {
        try SetPublisher(barrel, in: self, durability: durability).publish(to: folder, known: known)
    }
}
