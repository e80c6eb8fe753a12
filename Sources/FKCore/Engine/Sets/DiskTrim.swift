import FKMiddleware
import Foundation

/// The order in which `Downloader.trim(to:by:)` deletes.
public enum TrimOrder: Sendable, Hashable {
    /// The least recently used first: by `Barrel.withFiles`, `Barrel.markUsed()` or `Control.markUsed(_:)`, else when it was completed or
    /// published.
    case lastUsed
    /// The largest first.
    case size
}

/// What `Downloader.trim(to:by:)` or a download under `Configure.diskBudget` has deleted.
public struct TrimmedFiles: Sendable, Hashable {
    /// The bytes that the file system got back. A file that still has another name, or that is open, counts as 0 until then.
    public var freedBytes: Int64 = 0
    /// The bytes that the finished files of the work path use now. Files that were changed do not count.
    public var usedBytes: Int64 = 0
    /// The barrels whose files were deleted.
    public var barrels: [String] = []
    /// The deleted files of tasks without a barrel.
    public var files: [URL] = []
    /// The published folders whose sets were deleted. Files of others stay in them.
    public var folders: [URL] = []
    /// The files and published folders that could not be deleted. They stay, and count.
    public var failures: [DownloadError] = []
    /// The barrels that stay because they are in use: in `Barrel.withFiles`, or because their members are being downloaded.
    public var inUse: [String] = []
    /// `DiskBudget.ended` when the work began.
    var endedBefore: Int64 = 0

    package init() {}

    /// True if nothing was deleted.
    var isEmpty: Bool { barrels.isEmpty && folders.isEmpty && files.isEmpty }

    /// What was deleted, for people.
    package var summary: String {
        var parts: [String] = []
        if !barrels.isEmpty {
            parts.append("the files of \(barrels.count.plural("barrel")) (\(Self.names(barrels)))")
        }
        if !folders.isEmpty {
            let names = Self.names(folders.map(\.path))
            parts.append("\(folders.count.plural("published folder")) (\(names))")
        }
        if !files.isEmpty {
            parts.append("\(files.count.plural("file")) (\(Self.names(files.map(\.path))))")
        }
        let last = parts.popLast() ?? ""
        let all = parts.isEmpty ? last : "\(parts.joined(separator: ", ")) and \(last)"
        let failure = failures.first.map { "; \($0.message)" } ?? ""
        return "\(all) deleted, \(ByteSize.format(freedBytes)) freed\(failure)"
    }

    private static func names(_ all: [String]) -> String {
        all.prefix(3).joined(separator: ", ") + (all.count > 3 ? " and \(all.count - 3) more" : "")
    }
}

/// Deletes finished files until the rest fits: a barrel with its published set as a whole, and files of tasks without a barrel one by one.
///
/// A member of several barrels is deleted with the last of them. The tasks stay, so the files can be downloaded again. A barrel with a member
/// that waits or is being downloaded is in use. A published set stays unless each of its files is still that of a member of the barrel, as the
/// member's record has it: the set may be the only copy of the others.
package struct DiskTrim {
    /// Bytes that a disk lacks.
    package struct Shortage: Sendable, Hashable {
        /// The device of the file system.
        var device: UInt64
        var bytes: Int64
    }

    /// One trim at a time in this process, so that each sees what the others have deleted.
    private static let turn = NSLock()

    private struct Inode: Hashable {
        var device: UInt64
        var number: UInt64
    }

    /// What is deleted together.
    private struct Unit {
        var barrel: String?
        var used: Date
        var files: [TaskRecord] = []
        /// The folder of the published set, which goes as well; nil if there is none, or it stays.
        var folder: String?
        var inodes: [Inode: Int64] = [:]

        var bytes: Int64 { inodes.values.reduce(0, +) }
        func bytes(on device: UInt64) -> Int64 { inodes.reduce(0) { $0 + ($1.key.device == device ? $1.value : 0) } }
    }

    /// A published set, and how many of its files, by what records say of their bytes, have no member that was seen yet.
    private struct PublishedFiles {
        let folder: String
        let mark: SetMark
        let used: Date
        var orphans: [String: Int] = [:]

        mutating func found(_ record: TaskRecord) {
            guard !orphans.isEmpty else { return }
            let content = record.content
            guard let count = orphans[content] else { return }
            orphans[content] = count > 1 ? count - 1 : nil
        }
    }

    private let workPath: WorkPath
    private let order: TrimOrder

    package init(_ workPath: WorkPath, by order: TrimOrder) { (self.workPath, self.order) = (workPath, order) }

    /// Makes room.
    ///
    /// - Throws: `.disk` if the records cannot be listed.
    func trim(_ room: BudgetDecision.Room) throws -> TrimmedFiles { try Self.turn.withLock { try trimNow(room) } }

    private func trimNow(_ room: BudgetDecision.Room) throws -> TrimmedFiles {
        var result = TrimmedFiles()
        // What killed processes have left goes first.
        var freed: Int64 = 0
        result.failures = PublishedSets.sweep(workPath) { freed += Self.freedBytes($0) }
        result.freedBytes = freed
        var units: [ExactText: Unit] = [:]
        var single: [Unit] = []
        var open = room.barrels
        var sets = try publishedSets()
        let records = try StoreReader(workPath).records(where: { record in
            for barrel in record.barrels { sets[ExactText(barrel)]?.found(record) }
            if record.state == .idle || record.state == .action {
                for barrel in record.barrels { open.insert(ExactText(barrel)) }
            }
            return record.state == .complete && record.isForeign != true && !room.fetched.contains(record.id)
        })
        for record in records {
            guard let path = record.path, let (inode, size) = Self.inode(path),
                record.claim(path).act(.trash) == .remove
            else { continue }
            let used = record.lastUsed ?? record.finished ?? record.created
            if record.barrels.isEmpty {
                single.append(Unit(used: used, files: [record], inodes: [inode: size]))
            }
            for barrel in record.barrels {
                var unit = units.removeValue(forKey: ExactText(barrel)) ?? Unit(barrel: barrel, used: used)
                unit.used = max(unit.used, used)
                unit.files.append(record)
                unit.inodes[inode] = size
                units[ExactText(barrel)] = unit
            }
        }
        for (barrel, set) in sets where set.orphans.isEmpty && workPath.hasBarrel(barrel.text) {
            var unit = units.removeValue(forKey: barrel) ?? Unit(barrel: barrel.text, used: set.used)
            unit.used = max(unit.used, set.used)
            for file in set.mark.files {
                guard let (inode, size) = Self.inode(set.folder.path(of: file.name)) else { continue }
                unit.folder = set.folder
                unit.inodes[inode] = size
            }
            if !unit.inodes.isEmpty { units[barrel] = unit }
        }
        let all = Array(units.values) + single
        var users: [Inode: Int] = [:]
        for unit in all {
            for (inode, size) in unit.inodes {
                users[inode, default: 0] += 1
                if users[inode] == 1 { result.usedBytes += size }
            }
        }
        // What would not be enough stays.
        var shortage = room.shortage?.bytes ?? 0
        let device = room.shortage?.device
        let isFree = { (unit: Unit) in unit.barrel.map { !open.contains(ExactText($0)) } ?? true }
        if let device, all.reduce(0, { $0 + (isFree($1) ? $1.bytes(on: device) : 0) }) < shortage { shortage = 0 }
        var gone: Set<ExactText> = []
        var isTrimmed = false
        for unit in all.sorted(by: precedes) {
            let size = unit.bytes
            let helps = device.map { unit.bytes(on: $0) > 0 } ?? false
            guard
                result.usedBytes > room.limit || shortage > 0 && helps
                    || isTrimmed && result.usedBytes - size >= room.limit - room.slack && room.slack > 0
            else { continue }
            guard isFree(unit) else {
                result.inUse.append(unit.barrel ?? "")
                continue
            }
            let freed = result.freedBytes
            guard let left = delete(unit, &gone, &result) else { continue }
            isTrimmed = true
            if helps { shortage -= result.freedBytes - freed }
            for (inode, size) in unit.inodes where !left.contains(inode) {
                users[inode, default: 1] -= 1
                if users[inode] == 0 { result.usedBytes -= size }
            }
        }
        return result
    }

    private func precedes(_ one: Unit, _ other: Unit) -> Bool {
        switch order {
        case .lastUsed: one.used < other.used
        case .size: one.bytes > other.bytes
        }
    }

    /// The published sets by their barrels, of which some may be gone.
    private func publishedSets() throws -> [ExactText: PublishedFiles] {
        var sets: [ExactText: PublishedFiles] = [:]
        for file in try FileIO.names(in: workPath.setsFolder) where file.hasSuffix(".set") {
            let path = workPath.setsFolder.path(of: file)
            var status = stat()
            guard let bytes = try? FileIO.contents(of: path, limit: 1 << 20), stat(path, &status) == 0,
                let name = try? StoreJSON.decode(SetRecord.self, from: bytes).barrel,
                let folder = try? SetRecord(name, in: workPath)?.folder, let mark = SetMark(in: folder)
            else { continue }
            let used = Date(timeIntervalSince1970: Double(status.modificationTime) / 1e9)
            var set = PublishedFiles(folder: folder, mark: mark, used: used)
            for file in mark.files { set.orphans[file.content, default: 0] += 1 }
            sets[ExactText(name)] = set
        }
        return sets
    }

    /// Deletes the files of a unit.
    ///
    /// - Returns: the files that could not be deleted; nil if everything stays.
    private func delete(_ unit: Unit, _ gone: inout Set<ExactText>, _ result: inout TrimmedFiles) -> Set<Inode>? {
        if let barrel = unit.barrel {
            if let folder = unit.folder, !deleteSet(folder, of: barrel, &result) { return nil }
            gone.insert(ExactText(barrel))
        }
        var left: Set<Inode> = []
        var isAnyDeleted = unit.folder != nil
        for record in unit.files where record.barrels.allSatisfy({ gone.contains(ExactText($0)) }) {
            guard let path = record.path, record.claim(path).act(.trash) == .remove else { continue }
            var status = stat()
            let isThere = lstat(path, &status) == 0
            do {
                guard try FileIO.remove(path), isThere else { continue }
                result.freedBytes += Self.freedBytes(status)
                isAnyDeleted = true
                if unit.barrel == nil { result.files.append(URL(fileURLWithPath: path)) }
            } catch {
                left.insert(Self.inode(status))
                result.failures.append(Self.failure(error, path))
            }
        }
        guard isAnyDeleted || left.isEmpty else { return nil }
        if let barrel = unit.barrel { result.barrels.append(barrel) }
        return left
    }

    /// Deletes the published set of a barrel. Files of others stay in the folder.
    ///
    /// - Returns: false if it stays: it is in use, or cannot be deleted.
    private func deleteSet(_ folder: String, of barrel: String, _ result: inout TrimmedFiles) -> Bool {
        var freed: Int64 = 0
        defer { result.freedBytes += freed }
        do {
            let publisher = SetPublisher(barrel, in: workPath, durability: .process)
            guard try publisher.withdraw({ freed += Self.freedBytes($0) }) else {
                result.inUse.append(barrel)
                return false
            }
            result.folders.append(URL(fileURLWithPath: folder, isDirectory: true))
            return true
        } catch {
            let reason = Self.failure(error, folder).message
            result.failures.append(
                DownloadError(
                    .disk, "The published folder \(folder) of the barrel \(barrel) was not deleted. \(reason)"))
            return false
        }
    }

    private static func failure(_ error: any Error, _ path: String) -> DownloadError {
        DownloadError(wrapping: error, code: .disk, message: "\(path) cannot be deleted.")
    }

    /// The bytes that the file system gets back for a file that was deleted.
    private static func freedBytes(_ status: stat) -> Int64 { status.st_nlink == 1 ? Int64(status.st_blocks) * 512 : 0 }

    private static func inode(_ status: stat) -> Inode {
        Inode(device: UInt64(truncatingIfNeeded: status.st_dev), number: UInt64(status.st_ino))
    }

    private static func inode(_ path: String) -> (Inode, Int64)? {
        var status = stat()
        guard lstat(path, &status) == 0, status.st_mode & S_IFMT == S_IFREG else { return nil }
        return (inode(status), Int64(status.st_blocks) * 512)
    }
}

extension PublishedSets {
    /// Records that the set of a barrel was used. A barrel without one has no note.
    ///
    /// - Parameter time: in nanoseconds since 1970; nil, the default, for now.
    package static func markUsed(_ barrel: String, in workPath: WorkPath, at time: Int64? = nil) {
        let path = workPath.setPath(barrel)
        guard let time else {
            utimensat(AT_FDCWD, path, nil, 0)
            return
        }
        SetFile.setTime(of: path, time)
    }
}

extension WorkPath {
    /// Deletes finished files until the remaining ones use at most `limit` bytes.
    ///
    /// - Throws: `.disk` if the records cannot be listed.
    package func trim(to limit: Int64, by order: TrimOrder) throws -> TrimmedFiles {
        try DiskTrim(self, by: order).trim(BudgetDecision.Room(limit: limit, slack: 0))
    }
}
