import FKMiddleware
import Foundation

// The only file that removes, renames or shortens files outside the work path. Finished files are asked for their
// `FileClaim` at that moment, and part files for their `PartClaim`; a file set aside has a hidden name that only its task uses.

// MARK: - Finished files

extension TaskRecord {
    /// What became of a file that was to be removed.
    enum Removal: Hashable {
        case removed
        case gone
        /// It stays, for this reason.
        case stays(String)
    }

    /// Deletes a file where the table of claims allows it.
    ///
    /// - Parameter owner: of the work path; nil for a process that does not own it.
    func remove(_ path: String, for deed: FileClaim.Deed, _ owner: FileOwner?) -> Removal {
        let claim = claim(path, owner)
        guard claim.act(deed) == .remove else {
            return claim == .gone ? .gone : .stays("it is not the file as this task left it")
        }
        if unlink(path) == 0 { return .removed }
        return errno == ENOENT ? .gone : .stays(String(cString: strerror(errno)))
    }

    /// Gives the part's name back to the finished file. If a middleware has moved it to another file system, it is copied.
    ///
    /// - Returns: false if the file is not the task's own, and stays.
    func reclaim(_ path: String, as part: String, in folder: Folder, _ owner: FileOwner) throws(DownloadError) -> Bool {
        guard claim(path, owner).act(.unpublish) == .move else { return false }
        folder.removePart(part, partKey(owner))
        if folder.contains(part) { return false }
        if rename(path, folder.path(of: part)) == 0 { return true }
        guard errno == EXDEV, (try? FileManager.default.moveItem(atPath: path, toPath: folder.path(of: part))) != nil
        else {
            throw DownloadError(system: errno, "take back", path, in: .destination)
        }
        return true
    }

    /// Removes the part's name after a rename by hard link was interrupted. Without an exclusive rename, a file is
    /// linked to its final name and then loses the part's. A part file with two names is not adopted, so this
    /// finishes the work of a killed process.
    func finishRename() {
        guard let path, let part = partBesideFile else { return }
        // Nearly every part is gone: it is looked for first.
        if FileNames.areOfOneFile(part, path) { unlink(part) }
    }

    /// Deletes the part file, and a copy of it. It does not create a missing folder.
    func removePart(of workPath: WorkPath, _ owner: FileOwner) {
        // That of an attempt that was killed before it was recorded has the usual name.
        let name =
            partName
            ?? FileNameRules.partName(
                for: task.fileName ?? FileNameRules.name(url: task.url, head: response), id: id)
        for folder in partFolders(home: workPath.destination(of: self)) where folder.path(of: name).existsOnDisk {
            try? Folder(path: folder).removePart(name, partKey(owner))
        }
    }

    /// Deletes the files that this task wrote. A file that existed before, or that was replaced since, stays.
    ///
    /// - Parameters:
    ///   - keepsFinished: true keeps the finished file, which then belongs to no task.
    ///   - keepsRenewed: true keeps the finished file that a refresh or repair was to replace.
    /// - Returns: a note about the files.
    func removeFiles(
        of workPath: WorkPath, _ owner: FileOwner, keepsFinished: Bool, keepsRenewed: Bool
    ) -> String {
        removePart(of: workPath, owner)
        var note = "forgotten" + (path.map { keepsFinished ? release($0, owner) : delete($0, owner) } ?? "")
        if let former {
            // No fetch has replaced it yet.
            let old = ofFinished
            note += keepsRenewed ? old.release(former.path, owner) : old.delete(former.path, owner)
        }
        for file in setAside ?? [] where file.remove() { note += ", deleted \(file.path)" }
        let folder = workPath.destination(of: self)
        let name = task.fileName ?? FileNameRules.name(url: task.url, head: response)
        let rejected = "\(folder)/\(FileNameRules.rejectedName(for: name, id: id))"
        if setAside == nil, claimUnrecorded(rejected).act(.removeSetAside) == .remove, unlink(rejected) == 0 {
            note += ", deleted \(rejected)"
        }
        if task.directory == nil { rmdir(folder) }
        return note
    }

    /// - Returns: the end of the note.
    private func delete(_ path: String, _ owner: FileOwner) -> String {
        guard isForeign != true else { return "" }
        return switch remove(path, for: .trash, owner) {
        case .removed: ", deleted \(path)"
        case .gone: ""
        case .stays(let reason): "; \(path) stays: \(reason)"
        }
    }

    /// Removes the task's mark. Otherwise the file would count as a leftover of the task after a power cut.
    private func release(_ path: String, _ owner: FileOwner) -> String {
        let claim = claim(path, owner)
        if claim == .gone { return "" }
        if claim == .ours { FileOwner.clear(path) }
        return ", kept \(path)"
    }
}

extension TaskEntry {
    /// Removes the places from which response middlewares have moved the file.
    package func removeLeftBehind() {
        for file in left where file.claim.act(.removeLeftBehind) == .remove { unlink(file.path) }
        leaveBehind([])
    }
}

extension SetAsideFile {
    /// Removes the file if it is still the same. Returns true if it was removed.
    @discardableResult
    fileprivate func remove() -> Bool { claim.act(.removeSetAside) == .remove && unlink(path) == 0 }
}

extension TaskRecord {
    /// Removes an earlier file with this name.
    package mutating func removeSetAside(_ path: String) { forgetSetAside(path).first?.remove() }

    /// The task is complete: removes the files that were moved aside, except changed ones, and forgets the file that was
    /// replaced. Returns false if there were none.
    package mutating func removeSetAside() -> Bool {
        guard let files = forgetSetAside() else { return false }
        for file in files { file.remove() }
        return true
    }
}

// MARK: - Files in a folder that is kept open

extension Folder {
    /// How a file gets a name that no other file has. A file system may not have the first two.
    enum ExclusiveWay: CaseIterable {
        case rename, link, reserve
    }

    /// Renames a file within this folder.
    ///
    /// - Parameter ways: are tried in order while the file system does not have them; the default is all.
    /// - Returns: false if `replacing` is false and the name is taken. The file then keeps its name.
    /// - Throws: `.destination` if the entry to replace is not a file; otherwise the system's error.
    func rename(
        _ name: String, to newName: String, replacing: Bool, ways: [ExclusiveWay] = ExclusiveWay.allCases
    ) throws(DownloadError) -> Bool {
        if replacing {
            try checkReplaceable(newName)
            guard renameat(descriptor, name, descriptor, newName) == 0 else {
                if let refusal = refusal(of: newName, errno) { throw refusal }
                throw DownloadError(system: errno, "rename to", path(of: newName), in: .destination)
            }
            return true
        }
        for way in ways {
            if renameExclusively(name, newName, way) { return true }
            guard [EINVAL, ENOSYS, ENOTSUP, EPERM, EMLINK].contains(errno) else { break }
        }
        guard errno == EEXIST else {
            if let refusal = refusal(of: newName, errno) { throw refusal }
            throw DownloadError(system: errno, "rename to", path(of: newName), in: .destination)
        }
        // A process that was killed between the two steps leaves the file under both names. That name is then its
        // own.
        guard areOne(name, newName) else { return false }
        unlinkat(descriptor, name, 0)
        return true
    }

    /// - Returns: false with `errno` if it has failed.
    private func renameExclusively(_ name: String, _ newName: String, _ way: ExclusiveWay) -> Bool {
        switch way {
        case .rename: return exclusiveRename(descriptor, name, descriptor, newName) == 0
        case .link:
            guard linkat(descriptor, name, descriptor, newName, 0) == 0 else { return false }
            unlinkat(descriptor, name, 0)
            return true
        case .reserve: return FileNames.renameByReserving(name, to: newName, in: descriptor) == 0
        }
    }

    /// Moves a part file to another folder. A part of the task there is an earlier copy.
    ///
    /// - Returns: false if that folder is on another file system.
    /// - Throws: `.destination` if the name there is of another owner; otherwise the system's error.
    func movePart(_ name: String, to other: Folder, _ key: PartKey) throws(DownloadError) -> Bool {
        let (claim, file) = try other.openPart(name, key)
        if claim.allows(.remove) { file?.remove() }
        file?.close()
        if let reason = claim.reason {
            throw DownloadError(
                .destination, "\(other.path(of: name)) \(reason): remove it, then retry; the received bytes are kept.")
        }
        if exclusiveRename(descriptor, name, other.descriptor, name) == 0 { return true }
        if [EINVAL, ENOSYS, ENOTSUP].contains(errno), renameat(descriptor, name, other.descriptor, name) == 0 {
            return true
        }
        if errno == EXDEV { return false }
        throw DownloadError(system: errno, "move to", other.path(of: name), in: .destination)
    }

    private func areOne(_ name: String, _ other: String) -> Bool {
        guard let first = status(of: name), let second = status(of: other) else { return false }
        return Identity(first) == Identity(second)
    }

    package func remove(_ name: String) { unlinkat(descriptor, name, 0) }

    /// Deletes a part file that no process has open. A file of another owner stays.
    func removePart(_ name: String, _ key: PartKey) {
        guard let (claim, file) = try? openPart(name, key), let file else { return }
        if claim.allows(.remove) { file.remove() }
        file.close()
    }
}

extension PartFile {
    /// Removes the file, unless another file has the name.
    func remove() {
        guard let identity, let named = folder.status(of: name) else { return }
        if FileIdentity(named).inode == identity.inode { folder.remove(name) }
    }

    func truncate(to length: Int64) throws(DownloadError) {
        guard ftruncate(descriptor, off_t(length)) == 0 else {
            throw DownloadError(system: errno, "shorten", path, in: .destination)
        }
    }
}

#if canImport(Glibc) || canImport(Musl)
    private typealias RenameAt2 =
        @convention(c) (Int32, UnsafePointer<CChar>, Int32, UnsafePointer<CChar>, UInt32) -> Int32

    /// `renameat2` is missing in the headers that Swift imports. glibc has it since 2.28.
    private let renameAt2: RenameAt2? = dlsym(nil, "renameat2").map { unsafeBitCast($0, to: RenameAt2.self) }

    private func exclusiveRename(_ folder: Int32, _ name: String, _ other: Int32, _ newName: String) -> Int32 {
        guard let renameAt2 else {
            errno = ENOSYS
            return -1
        }
        let noReplace: UInt32 = 1
        return name.withCString { name in
            newName.withCString { renameAt2(folder, name, other, $0, noReplace) }
        }
    }
#else
    private func exclusiveRename(_ folder: Int32, _ name: String, _ other: Int32, _ newName: String) -> Int32 {
        renameatx_np(folder, name, other, newName, UInt32(RENAME_EXCL))
    }
#endif
