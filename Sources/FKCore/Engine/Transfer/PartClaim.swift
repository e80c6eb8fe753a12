import FKMiddleware
import Foundation

/// The only answer to the question whose part file is at a name. Code that adopts, shortens, moves or removes a part asks for it
/// at that moment, and follows the table of `Deed`.
///
/// Part names are predictable: two work paths that fetch one URL into one folder have one name, and in a shared folder anybody can
/// create a file with it. The owner of a file can write to it after its digest was compared, and through a second link or a symlink
/// our bytes would overwrite another file. A process that has a part open holds its lock (`PartLock`), and the file has the mark of its
/// work path (`FileOwner`), or its name does.
///
/// | there is | the claim |
/// | --- | --- |
/// | nothing | gone |
/// | a symlink, a folder, a file of another user or with a second name | foreign |
/// | the file that this attempt has open | ours |
/// | a file that another process, or another engine of this one, has open | living |
/// | a file with the mark of this work path | left |
/// | a file with the mark of this work path before it was moved or copied, with the time that the record has, or empty | left |
/// | the same with another time and bytes | idle |
/// | a file with the mark of another work path, whether that one still exists or not | idle |
/// | a file without a mark, as earlier versions made them, with the time that the record has | left |
/// | an empty file without a mark: a process was killed before it had marked it | left |
/// | any other file without a mark | unmarked |
package enum PartClaim: Hashable, Sendable {
    /// There is none.
    case gone
    /// The open part of this attempt.
    case ours
    /// Our own, of an earlier attempt. No process has it open.
    case left
    /// Nothing tells whose it is. No process has it open.
    case unmarked
    /// Another process has it open.
    case living
    /// Another work path has left it.
    case idle
    /// No part file of ours can be like that. The text completes "it ...".
    case foreign(String)

    /// An entry with the name of a part, as it was found.
    struct Found: Hashable {
        /// The reason why no part of ours can be like that; nil for a regular file of our own with only this name.
        var fault: String?
        var owner = FileOwner.PartOwner.unknown
        var isEmpty = false
        /// True if another descriptor holds its lock. File systems without locks have none.
        var isLocked = false
        /// True for the file that this attempt has open.
        var isOpenHere = false
        /// True if it is as the record says that the task has left it.
        var isAsRecorded = false
    }

    /// Decides.
    ///
    /// - Parameter found: what is at the name; nil if nothing is.
    static func judge(_ found: Found?) -> PartClaim {
        guard let found else { return .gone }
        if let fault = found.fault { return .foreign(fault) }
        if found.isOpenHere { return .ours }
        if found.isLocked { return .living }
        switch found.owner {
        case .us: return .left
        case .relative: return found.isAsRecorded || found.isEmpty ? .left : .idle
        case .another: return .idle
        case .unknown: return found.isAsRecorded || found.isEmpty ? .left : .unmarked
        }
    }

    /// What is done to a part file.
    ///
    /// | deed | ours | left | unmarked | living, idle, foreign |
    /// | --- | --- | --- | --- | --- |
    /// | write, publish | yes | | | |
    /// | adopt: continue with its bytes | | yes | | |
    /// | shorten, remove | yes | yes | | |
    /// | set aside: it gets another name, which is reported | yes | yes | yes | |
    enum Deed: Hashable, CaseIterable {
        case write, publish, adopt, shorten, remove, setAside
    }

    /// The table of `Deed`.
    func allows(_ deed: Deed) -> Bool {
        switch (deed, self) {
        case (.write, .ours), (.publish, .ours), (.adopt, .left): true
        case (.shorten, .ours), (.shorten, .left), (.remove, .ours), (.remove, .left): true
        case (.setAside, .ours), (.setAside, .left), (.setAside, .unmarked): true
        default: false
        }
    }

    /// Why the file stays as it is; completes "it ...". nil if it is the task's own or missing.
    var reason: String? {
        switch self {
        case .gone, .ours, .left: nil
        case .unmarked: "has no mark of this work path"
        case .living: "is open in another process, which downloads the same file"
        case .idle: "belongs to another work path"
        case .foreign(let reason): reason
        }
    }
}

/// What a task knows of its part file.
struct PartKey: Sendable {
    let id: TaskID
    let owner: FileOwner
    /// The recorded name; nil if the record has no bytes of it.
    var name: String?
    /// The recorded time of the last write; nil if the process had no time to record it.
    var time: Int64?
    /// The end of the last recorded byte.
    var end: Int64 = 0
    /// The finished file, which may have been taken back from its final name.
    var written: FileIdentity?

    /// True if the file is as the record says.
    fileprivate func isAsRecorded(_ name: String, _ status: stat) -> Bool {
        guard self.name?.isExactly(name) == true else { return false }
        if written.map({ FileIdentity(status).matches($0) }) == true { return true }
        guard let time else { return true }
        return Int64(status.st_size) >= end && FileIdentity.isSameTime(status.modificationTime, time)
    }
}

extension TaskRecord {
    /// What the task knows of its part file.
    func partKey(_ owner: FileOwner) -> PartKey {
        PartKey(
            id: id, owner: owner, name: ranges.isEmpty ? nil : partName, time: partTime, end: heldEnd, written: written)
    }
}

extension Folder {
    /// Whose part file has the name. It takes no lock.
    func claim(ofPart name: String, _ key: PartKey) -> PartClaim {
        guard let status = status(of: name) else { return .gone }
        if let fault = partFault(status, key) { return .foreign(fault) }
        guard let file = try? open(name, flags: O_RDONLY | O_NONBLOCK) else {
            return .judge(found(-1, status, name, key))
        }
        defer { close(file) }
        return judge(file, name, key)
    }

    /// Opens the part file with the name, and takes its lock.
    ///
    /// - Returns: the claim, and the file if the task may change it or set it aside.
    func openPart(_ name: String, _ key: PartKey) throws(DownloadError) -> (claim: PartClaim, file: PartFile?) {
        guard let status = status(of: name) else { return (.gone, nil) }
        if let fault = partFault(status, key) { return (.foreign(fault), nil) }
        let part = try PartFile(writing: name, in: self)
        let claim = judge(part.descriptor, name, key)
        guard claim.allows(.setAside) else { return (claim, nil) }
        guard part.lock() else { return (.living, nil) }
        // Its owner may have opened, published or removed it just before.
        guard part.hasItsName else { return (.gone, nil) }
        let locked = judge(part.descriptor, name, key)
        if locked.allows(.adopt) { _ = key.owner.markPart(part.descriptor, as: key.id) }
        return (locked, locked.allows(.setAside) ? part : nil)
    }

    private func judge(_ file: Int32, _ name: String, _ key: PartKey) -> PartClaim {
        var status = stat()
        guard fstat(file, &status) == 0 else { return .foreign("cannot be examined") }
        return .judge(found(file, status, name, key))
    }

    private func found(_ file: Int32, _ status: stat, _ name: String, _ key: PartKey) -> PartClaim.Found {
        PartClaim.Found(
            fault: partFault(status, key), owner: key.owner.owner(ofPart: file, name, key.id),
            isEmpty: status.st_size == 0, isLocked: PartLock.isHeld(file),
            isAsRecorded: key.isAsRecorded(name, status))
    }

    /// The reason why an entry with this status is no part file of ours; nil for a regular file of our own with only this name.
    ///
    /// A finished file that was taken back from its final name may have a second name, given by a response middleware.
    private func partFault(_ status: stat, _ key: PartKey) -> String? {
        switch status.st_mode & S_IFMT {
        case S_IFREG: break
        case S_IFLNK: return "is a symlink"
        default: return "is not a regular file"
        }
        if status.st_nlink > 1, key.written.map({ FileIdentity(status).matches($0) }) != true {
            return "has \(status.st_nlink) names"
        }
        // Some file systems give all files one owner, or give the files of root another owner.
        if status.st_uid != geteuid(), status.st_uid != ownerOfNewFiles() { return "belongs to another user" }
        return nil
    }

    /// The owner of files that this process creates in the folder; nil if it cannot create one.
    private func ownerOfNewFiles() -> uid_t? {
        let name = ".\(Self.randomDigits()).fkpart"
        guard let file = try? open(name, flags: O_WRONLY | O_CREAT | O_EXCL) else { return nil }
        defer {
            remove(name)
            close(file)
        }
        var status = stat()
        return fstat(file, &status) == 0 ? status.st_uid : nil
    }

    /// Random hexadecimal digits, which cannot be predicted.
    static func randomDigits() -> String { String(UInt32.random(in: 1 << 28 ... .max), radix: 16) }
}
