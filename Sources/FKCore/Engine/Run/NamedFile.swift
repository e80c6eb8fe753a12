import FKMiddleware
import Foundation

/// Whose file a response middleware has named as the finished one. Its identity decides, never its length.
///
/// | the file at the path | the claim |
/// | --- | --- |
/// | no regular file, such as a symlink | another's |
/// | the received file, under whatever name | ours |
/// | a file with the mark of the task, which a copy with attributes has | ours |
/// | a file with the mark of another task or work path | another's |
/// | a second name of the copy that `MoveToFolderMiddleware` has left behind | ours |
/// | a file that was created since the middleware began | ours |
/// | at the place of the received file: a file of unknown age, which has replaced it | ours |
/// | any other file: it existed before | another's |
enum NamedFile: Hashable, Sendable {
    case ours, anothers

    /// A file, as it was found.
    struct Found: Hashable {
        var isRegular = true
        /// True for the received file; nil if its file system does not tell.
        var isReceived: Bool? = false
        var isAtItsPlace = false
        var isMarked = false
        var isOfAnother = false
        var isCopyLeftBehind = false
        /// True if it was created since the middleware began; nil if its file system does not tell.
        var isNew: Bool?
    }

    /// Decides.
    static func judge(_ found: Found) -> NamedFile {
        guard found.isRegular else { return .anothers }
        if found.isReceived == true { return .ours }
        if found.isOfAnother { return .anothers }
        if found.isMarked || found.isCopyLeftBehind { return .ours }
        if let isNew = found.isNew { return isNew ? .ours : .anothers }
        return found.isAtItsPlace ? .ours : .anothers
    }
}

/// The received file on its way through a response chain.
struct ReceivedFile: Sendable {
    let id: TaskID
    let owner: FileOwner
    /// Where it is now.
    private(set) var path: String
    private(set) var identity: FileIdentity?
    /// The time of the last change of its attributes, which an edit that sets the time of the last write back changes too.
    private var changeTime: Int64?
    /// True once a file that existed before counts as the result.
    private(set) var isAnothers = false
    /// The middlewares after which it was another file, or had another length or time.
    private(set) var changers: [String] = []

    init(_ path: String, _ identity: FileIdentity?, _ id: TaskID, _ owner: FileOwner) {
        (self.path, self.identity, self.id, self.owner) = (path, identity, id, owner)
        changeTime = Self.changeTime(path)
    }

    /// A middleware has named a file.
    ///
    /// - Parameter began: when the middleware began, in the time of files.
    /// - Throws: `.middleware` if it is another file and the received one is still at its place.
    mutating func adopt(
        _ path: String, leftBehind: [URL], since began: Int64, from name: String
    ) throws(DownloadError) {
        let isSamePath = path.isExactly(self.path)
        if isAnothers, isSamePath { return }
        guard judge(path, leftBehind, since: began) == .anothers else {
            let now = FileIdentity(path: path)
            let isEdited = isSamePath && Self.changeTime(path) != changeTime
            if let now, let identity, !now.matches(identity) || isEdited { changers.append(name) }
            (self.path, identity, changeTime, isAnothers) = (path, now, Self.changeTime(path), false)
            return
        }
        if !isSamePath, !isAnothers, isAtItsPlace, !FileManager.default.contentsEqual(atPath: self.path, andPath: path)
        {
            throw DownloadError(
                .middleware,
                "\(name) names \(path) as the finished file, but that is another file, which was there before. It stays as it is."
            )
        }
        changers.append(name)
        (self.path, isAnothers) = (path, true)
    }

    private func judge(_ path: String, _ leftBehind: [URL], since began: Int64) -> NamedFile {
        guard let found = FileClaim.Found(path) else { return .anothers }
        let isSamePath = path.isExactly(self.path)
        let isReceived = identity.flatMap { received in
            found.identity.isOne(with: received)
                ?? (isSamePath || !self.path.existsOnDisk || FileNames.areOfOneFile(path, self.path))
        }
        let aside = ".fk-\(id.leadingDigits(16))"
        return .judge(
            NamedFile.Found(
                isRegular: found.isRegular, isReceived: isReceived, isAtItsPlace: isSamePath,
                isMarked: found.mark.isOf(id, orNone: false), isOfAnother: found.mark.isOfAnother(id, owner),
                isCopyLeftBehind: leftBehind.contains {
                    $0.lastPathComponent.hasPrefix(aside) && FileNames.areOfOneFile($0.path, path)
                },
                isNew: found.identity.born.flatMap { born in
                    NetworkFileSystem.hasOwnClock(path) ? born >= began : nil
                }))
    }

    /// True if the received file is where it was.
    private var isAtItsPlace: Bool {
        guard let identity, let now = FileIdentity(path: path) else { return false }
        return now.isOne(with: identity) != false
    }

    private static func changeTime(_ path: String) -> Int64? {
        var status = stat()
        return lstat(path, &status) == 0 ? status.changeTime : nil
    }
}

extension FileChange {
    /// Reads a file that a middleware may have changed.
    ///
    /// - Parameter sums: receives the checksums of its pieces.
    /// - Throws: `.destination` if it cannot be read.
    static func read(_ path: String, by name: String, _ sums: inout [UInt32]) throws(DownloadError) -> FileChange {
        // A file that is not the task's may be a symlink.
        let target = realpath(path, nil)
        defer { free(target) }
        let path = target.map { String(cString: $0) } ?? path
        let file = try PartFile(reading: path.lastPathPart, in: try Folder(path: path.folderPart))
        defer { file.close() }
        let length = file.length
        sums = try file.sums([UInt32?](repeating: nil, count: PieceSums.count(length)), length: length)
        return FileChange(by: name, length: length, crc32c: PieceSums.whole(sums, length: length))
    }
}
