import FKMiddleware
import Foundation

/// The only answer to the question whose file is at a place. Code that removes, replaces, renames or shortens a file outside
/// the work path asks for it at that moment, and follows the table of `Deed`.
///
/// | there is | the claim |
/// | --- | --- |
/// | nothing | gone |
/// | a folder, a symlink, a device | foreign |
/// | a file that existed before and only counts as the result | foreign |
/// | a file with the mark of another task or work path | foreign |
/// | the recorded inode and birth, length and time of the last write | ours |
/// | the task's mark of this very inode and time of the last write: a power cut has shortened the file | ours |
/// | the recorded inode with the recorded birth, or with the task's mark | edited |
/// | the recorded inode alone: a removed file's number, used again | foreign |
/// | a record of an earlier version without identity: the length, and a time within the task's work | ours |
/// | the same with another length or time, and the task's mark | edited |
/// | anything else | foreign |
///
/// A published set's files are not a task's: the set's mark tells them from those of others (`SetMark.File.isOurs`).
package enum FileClaim: String, Sendable, Hashable, CaseIterable {
    /// The file as the task left it.
    case ours
    /// The file of the task, which another program has changed.
    case oursEdited
    /// Somebody else's.
    case foreign
    /// There is none.
    case gone

    /// An entry of a folder, as it was found.
    package struct Found: Hashable {
        /// False for a folder, a symlink or any other entry.
        package var isRegular = true
        package var identity: FileIdentity
        package var mark: FileOwner.Mark

        init(isRegular: Bool = true, identity: FileIdentity, mark: FileOwner.Mark) {
            self.isRegular = isRegular
            self.identity = identity
            self.mark = mark
        }

        /// What is at that path; nil if nothing is.
        package init?(_ path: String) {
            var status = stat()
            guard lstat(path, &status) == 0 else { return nil }
            isRegular = status.st_mode & S_IFMT == S_IFREG
            identity = FileIdentity(status, born: isRegular ? FileBirth.time(path, in: AT_FDCWD) : nil)
            mark = isRegular ? FileOwner.mark(of: path) : .unknown
        }
    }

    /// What a task knows of the file that it left at a place.
    struct Record: Hashable {
        var id: TaskID
        /// The file after the last write; nil in records of earlier versions.
        var written: FileIdentity?
        /// The length and the task's work, for records without `written`, in seconds since 1970.
        var expected: Int64?
        var work: ClosedRange<Double>?
        /// True if the file only counts as the result.
        var isForeign = false
    }

    /// Decides.
    ///
    /// - Parameters:
    ///   - found: what is at the place; nil if nothing is.
    ///   - owner: of the work path; nil, the default, proves nothing by a mark alone.
    static func judge(_ found: Found?, _ record: Record, _ owner: FileOwner? = nil) -> FileClaim {
        guard let found else { return .gone }
        guard found.isRegular, !record.isForeign, !found.mark.isOfAnother(record.id, owner) else { return .foreign }
        let isMarked = found.mark.isOf(record.id, orNone: false)
        guard let written = record.written else {
            let time = Double(found.identity.time) / 1e9
            if found.identity.length == record.expected, record.work?.contains(time) == true { return .ours }
            return isMarked ? .oursEdited : .foreign
        }
        if found.identity.matches(written) { return .ours }
        if let owner, owner.proves(found.mark, found.identity, record.id) { return .ours }
        return found.identity.isOne(with: written) ?? isMarked ? .oursEdited : .foreign
    }

    /// Decides for a file that was complete but never synced, in another boot: a power cut changes the bytes and the length
    /// of a file, and sets its time back to an earlier write of the task at most.
    ///
    /// - Parameter work: the task's work, in seconds since 1970.
    static func judge(
        _ found: Found?, afterPowerCut record: Record, work: (Double) -> ClosedRange<Double>, finished: Date?
    ) -> FileClaim {
        guard let found else { return .gone }
        guard found.isRegular, found.mark.isOf(record.id, orNone: true) else { return .foreign }
        let time = Double(found.identity.time) / 1e9
        guard let written = record.written else {
            guard let end = finished?.timeIntervalSince1970 else { return .ours }
            let range = work(end)
            return (range.lowerBound...end + TaskRecord.timeTolerance).contains(time) ? .ours : .foreign
        }
        // Without attributes, inodes may also have other numbers after each mount.
        if found.identity.inode != written.inode, found.mark != .unknown { return .foreign }
        if FileIdentity.isSameTime(found.identity.time, written.time) { return .ours }
        return work(Double(written.time) / 1e9).contains(time) ? .ours : .foreign
    }
}

extension FileClaim {
    /// What a verb does to a file at a place.
    package enum Act: Sendable, Hashable {
        /// Nothing: it stays as it is, under its name.
        case leave
        /// The name is free: the new file takes it.
        case take
        /// The new file replaces it.
        case replace
        /// It is kept under another name, which is reported, and the new file takes its name.
        case keepAside
        /// It is deleted.
        case remove
        /// It becomes a part file, or gets a hidden name of the task.
        case move
        /// Its bytes are read.
        case read
    }

    /// Whatever touches files outside the work path.
    ///
    /// | deed | ours | edited | foreign | gone |
    /// | --- | --- | --- | --- | --- |
    /// | publish | leave | leave | leave | take |
    /// | overwrite: the first download, with the person's permission | replace | replace | replace | take |
    /// | refresh, repair | replace | keep aside | leave | take |
    /// | forget | leave | leave | leave | leave |
    /// | trash, cancel, recovery | remove | leave | leave | leave |
    /// | unpublish, reject: before the task is complete | move | leave | leave | leave |
    /// | reuse, proof | read | leave | leave | leave |
    /// | removal of files set aside and left behind | remove | leave | leave | leave |
    package enum Deed: Sendable, Hashable, CaseIterable {
        /// The names of the table.
        case publish, overwrite, refresh, repair, forget, trash, cancel, recovery, unpublish, reject, reuse, proof
        /// The two removals of its last row.
        case removeSetAside, removeLeftBehind
    }

    /// The table of `Deed`.
    package func act(_ deed: Deed) -> Act {
        switch (deed, self) {
        case (.publish, .gone), (.overwrite, .gone), (.refresh, .gone), (.repair, .gone): .take
        case (.overwrite, _), (.refresh, .ours), (.repair, .ours): .replace
        case (.refresh, .oursEdited), (.repair, .oursEdited): .keepAside
        case (.trash, .ours), (.cancel, .ours), (.recovery, .ours), (.removeSetAside, .ours),
            (.removeLeftBehind, .ours):
            .remove
        case (.unpublish, .ours), (.reject, .ours): .move
        case (.reuse, .ours), (.proof, .ours): .read
        default: .leave
        }
    }
}

extension TaskRecord {
    /// The seconds by which the times of a file and of a record may differ, because clocks of file systems are
    /// coarse.
    static let timeTolerance = 2.0

    /// What the task knows of its finished file.
    var claimed: FileClaim.Record {
        FileClaim.Record(
            id: id, written: written, expected: expected, work: written == nil ? work : nil,
            isForeign: isForeign == true || expected == nil)
    }

    /// Whose file is at the path of the finished one.
    ///
    /// - Parameter owner: of the work path; nil, the default, for a process that does not own it.
    package func claim(_ path: String, _ owner: FileOwner? = nil) -> FileClaim {
        FileClaim.judge(FileClaim.Found(path), claimed, owner)
    }

    /// From the task's start to its end, as far as they are known.
    private var work: ClosedRange<Double> {
        let begin = (started ?? created).timeIntervalSince1970 - Self.timeTolerance
        let end = finished.map { $0.timeIntervalSince1970 + Self.timeTolerance } ?? .infinity
        return begin...max(begin, end)
    }

    /// Whose file has a name that only this task uses. Rejected bytes that an earlier version has set aside without
    /// recording them have one.
    package func claimUnrecorded(_ path: String) -> FileClaim {
        guard let found = FileClaim.Found(path) else { return .gone }
        var status = stat()
        guard found.isRegular, lstat(path, &status) == 0, status.st_uid == geteuid() else { return .foreign }
        return work.contains(Double(found.identity.time) / 1e9) ? .ours : .foreign
    }
}

extension SetAsideFile {
    /// Whose file is there now.
    package var claim: FileClaim {
        guard let found = FileClaim.Found(path) else { return .gone }
        return found.isRegular && found.identity.matches(written) ? .ours : .foreign
    }
}

extension FileIdentity {
    /// Why this file stays although a response middleware says that it has left it behind; nil if it may be removed. At the old place
    /// that is only the file that was moved, elsewhere a copy of it.
    ///
    /// - Parameters:
    ///   - isOldPlace: true for the place before the chain.
    ///   - old: the file before the chain; nil if it is not known.
    ///   - new: the file now, at `path`.
    package func staysBehind(_ isOldPlace: Bool, _ old: Self?, now new: Self?, at path: String) -> String? {
        if isOldPlace {
            let isMoved = old.map { inode == $0.inode && isOne(with: $0) != false } ?? true
            return isMoved ? nil : "it is another file than the one that was moved to \(path)"
        }
        return [old?.length, new?.length].contains(length)
            ? nil : "it is no copy of \(path), because their lengths differ"
    }
}
