import FKMiddleware
import Foundation

/// The members of a barrel as files of a set.
package struct SetMembers {
    /// A complete member.
    struct Member {
        let record: TaskRecord
        /// The finished file.
        let path: String
        /// The path below the folder of the set.
        var name: String
        /// What the record says of the bytes.
        let content: String
        let length: Int64
    }

    /// The complete members whose files are there.
    private(set) var files: [Member] = []
    /// The folder that the names are relative to; nil without one.
    private(set) var base: String?
    /// The number of all members.
    package private(set) var total = 0
    /// The number of members without a whole file.
    package private(set) var missing = 0
    private var hasBytes = false
    /// The number of members whose files nobody has compared since the system was restarted.
    private var unproven = 0
    private let barrel: String

    /// The members as an engine of this process has them.
    package struct Known: Sendable {
        /// The members, in the order in which they joined.
        let ids: [TaskID]
        /// The records of those that are in memory.
        let records: [TaskID: TaskRecord]

        package init(_ ids: [TaskID], _ records: [TaskID: TaskRecord]) { (self.ids, self.records) = (ids, records) }
    }

    /// Collects the records of the members.
    ///
    /// - Parameter known: what the engine has, so that it is not read again; nil, the default, reads the barrel's file, which may be a second
    ///   behind, and all records.
    /// - Throws: the errors of `StoreReader.barrel`.
    package init(_ barrel: String, in workPath: WorkPath, known: Known? = nil) throws {
        self.barrel = barrel
        let reader = StoreReader(workPath)
        if known == nil { Self.waitForFile(of: barrel, in: workPath) }
        let stored = try reader.barrelIDs(barrel)
        let members = known?.ids ?? stored.ids
        total = members.count
        var records = known?.records ?? [:]
        let others = members.filter { records[$0] == nil }
        reader.readAll(others, problem: { _ in }) { _, record in records[record.id] = record }
        for id in members { records[id].map { add($0) } }
        missing = total - files.count
        name(below: stored.barrel.options.directory, workPath)
    }

    /// Adds a member whose file is there.
    private mutating func add(_ record: TaskRecord) {
        hasBytes = hasBytes || record.received > 0
        if record.state == .complete, record.needsProof() { unproven += 1 }
        guard record.state == .complete, !record.needsProof(), let path = record.path, !LostFile.isGone(path),
            let length = record.fileLength ?? FileIdentity(path: path)?.length
        else { return }
        files.append(
            Member(record: record, path: path, name: path.lastPathPart, content: record.content, length: length))
    }

    /// Waits at most two seconds until the engine of another process has written a change of the members.
    private static func waitForFile(of barrel: String, in workPath: WorkPath) {
        guard EngineLock.isHeld(workPath) else { return }
        for _ in 0..<40 where BarrelFile.isMarked(barrel, in: workPath) { usleep(50_000) }
    }

    /// Names are relative to the barrel's folder, else to the deepest folder of all files. Files inside the work path have only
    /// their names.
    private mutating func name(below directory: String?, _ workPath: WorkPath) {
        let placed = files.indices.filter { Places.remainder(of: files[$0].path, in: workPath.filesFolder) == nil }
        guard var base = directory ?? placed.first.map({ files[$0].path.folderPart }) else { return }
        for index in placed {
            while Places.remainder(of: files[index].path, in: base) == nil, base.utf8.count > 1 {
                base = base.folderPart
            }
        }
        self.base = base
        for index in placed {
            guard base.utf8.count > 1 else {
                files[index].name = String(files[index].path.drop { $0 == "/" })
                continue
            }
            if let rest = Places.remainder(of: files[index].path, in: base) { files[index].name = rest }
        }
    }

    /// The version of the set.
    package var version: String {
        SetMark.version(of: files.map { ($0.name, $0.length, $0.content) })
    }

    /// The state of a barrel that was never published.
    var state: BarrelState {
        guard missing == 0, total > 0 else { return files.isEmpty && !hasBytes ? .absent : .partial }
        for file in files where file.record.isForeign != true && file.record.claim(file.path) != .ours {
            return FileIdentity(path: file.path)?.length == file.length ? .stale : .partial
        }
        return .ready(version: version)
    }

    /// Checks that the members can be one set.
    ///
    /// - Throws: `.notFound` for a barrel without members, `.incompleteBody` for missing files, `.fileExists` for two files with one name.
    func check() throws(DownloadError) {
        guard total > 0 else {
            throw DownloadError(.notFound, "The barrel \(barrel) has no members: add some before it is published.")
        }
        guard missing == 0 else {
            guard unproven < missing else {
                throw DownloadError(
                    .incompleteBody,
                    "The files of \(unproven.plural("member")) of the barrel \(barrel) were not synced, and were not compared since "
                        + "the system was restarted, so nothing was published.")
            }
            throw DownloadError(
                .incompleteBody,
                "\(missing) of \(total.plural("member")) of the barrel \(barrel) "
                    + "\(missing == 1 ? "has" : "have") no finished file, so it was not published.")
        }
        var seen: Set<ExactText> = []
        for file in files {
            let first = file.name.utf8.prefix { $0 != UInt8(ascii: "/") }
            if seen.insert(ExactText(file.name)).inserted, !first.elementsEqual(SetMark.fileName.utf8) { continue }
            throw DownloadError(
                .fileExists,
                "The barrel \(barrel) cannot be published: two of its files would be \(file.name), or the name is that of the mark. "
                    + "Give the members other names or a common folder.")
        }
    }
}

extension TaskRecord {
    /// What is known of the bytes: equal texts are equal bytes.
    var content: String {
        if changed == nil, let digest = fileDigest, digest.algorithm != .crc32c {
            return "\(digest.algorithm.rawValue)=\(digest.hex)"
        }
        return "\(id.short) \(written.map { "\($0.time)" } ?? "unknown")"
    }
}
