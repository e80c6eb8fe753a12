import FKMiddleware
import Foundation

/// Reads and writes barrels, one file each. A file is replaced as a whole: written aside and renamed.
///
/// ```text
/// {"format":1,"count":2,"crc":305419896}          CRC-32C of all bytes after this line
/// {"name":"books","created":…,"options":{…},"sums":{…}}
/// <64 hexadecimal digits> TAB <URL>               one line per member, in order
/// ```
///
/// The members are lines instead of one JSON document, so that 100,000 of them are read in milliseconds.
package enum BarrelFile {
    static let format = 1
    /// Larger files are not read.
    static let maxSize = 1 << 30

    private struct Header: Codable {
        var format: Int
        var count: Int
        var crc: UInt32
    }

    /// Writes a barrel.
    ///
    /// - Throws: `.invalidArgument` for an invalid name or a URL with a line feed; `.noSpace` or `.disk`. The file is
    ///   then unchanged.
    /// - Returns: the number of bytes written.
    @discardableResult
    package static func write(_ barrel: BarrelRecord, in workPath: WorkPath) throws -> Int {
        try BarrelName.validate(barrel.name)
        var body = try StoreJSON.encode(barrel)
        body.append(0x0a)
        body.reserveCapacity(body.count + barrel.members.reduce(0) { $0 + $1.url.utf8.count + 66 })
        for member in barrel.members {
            var url = member.url
            let isClean = url.withUTF8 { bytes in
                body.append(contentsOf: member.id.hex.utf8)
                body.append(0x09)
                body.append(contentsOf: bytes)
                body.append(0x0a)
                return !bytes.contains(0x0a)
            }
            guard isClean else { throw DownloadError(.invalidArgument, "A URL cannot hold a line feed.", url: url) }
        }
        let crc = body.withUnsafeBytes { CRC32C.checksum($0) }
        var file = try StoreJSON.encode(Header(format: format, count: barrel.members.count, crc: crc))
        file.append(0x0a)
        file.append(contentsOf: body)
        let path = workPath.barrelPath(barrel.name)
        try file.withUnsafeBytes { try FileIO.replace(path, aside: path + ".new", $0) }
        return file.count
    }

    /// Reads a barrel.
    ///
    /// - Throws: `.notFound`, `.corruptInfo`, `.laterVersion` or `.disk`.
    package static func read(_ name: String, in workPath: WorkPath) throws -> BarrelRecord {
        do {
            let barrel = try read(path: workPath.barrelPath(name))
            guard barrel.name.isExactly(name) else {
                throw DownloadError(.corruptInfo, "The file of the barrel \"\(name)\" belongs to another one.")
            }
            return barrel
        } catch let error as DownloadError where error.code == .notFound {
            throw DownloadError(.notFound, "There is no barrel named \"\(name)\".")
        }
    }

    /// The names of all barrels, sorted. A file name may not contain the whole barrel name; the start of such a file
    /// is read. A file without a readable name is left out.
    package static func list(in workPath: WorkPath) -> [String] {
        paths(in: workPath).compactMap { path in
            let stem = path.lastPathPart.dropLast(".barrel".count)
            // Foundation's own decoding drops a byte order mark.
            if !stem.contains("%~"), let name = PercentCoding.decodedString(Array(stem.utf8)[...]) { return name }
            return try? read(path: path).name
        }.sorted()
    }

    /// All barrels, oldest first. An unreadable file is moved to the quarantine and reported; a file of a later
    /// version is reported and stays. Only for the process that owns the engine.
    package static func readAll(in workPath: WorkPath) -> (barrels: [BarrelRecord], problems: [DownloadError]) {
        var barrels: [BarrelRecord] = []
        var problems: [DownloadError] = []
        for path in paths(in: workPath) {
            do {
                let barrel = try read(path: path)
                guard workPath.barrelPath(barrel.name).isExactly(path) else {
                    throw DownloadError(.corruptInfo, "\(path) says it is the barrel \"\(barrel.name)\".")
                }
                barrels.append(barrel)
            } catch let error as DownloadError where error.code == .corruptInfo {
                problems.append(Quarantine.move(path, in: workPath, because: error))
            } catch {
                problems.append(DownloadError(wrapping: error, code: .disk, message: "\(path) cannot be read."))
            }
        }
        barrels.sort { ($0.created, $0.name) < ($1.created, $1.name) }
        return (barrels, problems)
    }

    /// Deletes a barrel's file. Returns false if there was none.
    @discardableResult
    package static func delete(_ name: String, in workPath: WorkPath) throws -> Bool {
        try FileIO.remove(workPath.barrelPath(name))
    }

    // MARK: The mark of a change

    /// Marks that members are joining or leaving. While the mark exists, the records of the tasks are newer than the
    /// barrel's file.
    static func mark(_ name: String, in workPath: WorkPath) throws {
        let empty: [UInt8] = []
        do {
            try empty.withUnsafeBytes { try FileIO.create(markPath(name, in: workPath), $0) }
        } catch let error as DownloadError where error.code == .fileExists {}
    }

    static func isMarked(_ name: String, in workPath: WorkPath) -> Bool {
        access(markPath(name, in: workPath), F_OK) == 0
    }

    static func removeMark(_ name: String, in workPath: WorkPath) { unlink(markPath(name, in: workPath)) }

    private static func markPath(_ name: String, in workPath: WorkPath) -> String {
        workPath.barrelPath(name) + ".changing"
    }

    /// The barrel according to the records of its tasks, for a process that was killed between writing those and the
    /// barrel.
    ///
    /// Tasks whose record names the barrel join it, in the order of submission. A member leaves if its record does
    /// not name the barrel, or if its info file is missing and not in the quarantine. It reads every record of the
    /// work path.
    static func reconciled(_ barrel: BarrelRecord, in workPath: WorkPath) -> BarrelRecord {
        var barrel = barrel
        var joined: [(number: UInt64, member: BarrelMember)] = []
        var others: Set<TaskID> = []
        _ = StoreReader(workPath).records { record in
            if record.barrels.containsExactly(barrel.name) {
                joined.append((record.number, BarrelMember(id: record.id, url: record.task.url)))
            } else {
                others.insert(record.id)
            }
            return false
        }
        let there = Set(workPath.allTaskIDs())
        // `<time>-<id>.info`
        let kept = Set(
            FileIO.names(in: workPath.quarantineFolder).compactMap { TaskID(hex: String($0.suffix(69).prefix(64))) })
        barrel.members.removeAll { !there.contains($0.id) && !kept.contains($0.id) || others.contains($0.id) }
        let known = Set(barrel.members.map(\.id))
        joined.removeAll { known.contains($0.member.id) }
        barrel.members += joined.sorted { $0.number < $1.number }.map(\.member)
        return barrel
    }

    // MARK: Inside

    private static func paths(in workPath: WorkPath) -> [String] {
        FileIO.names(in: workPath.barrelsFolder).filter { $0.hasSuffix(".barrel") }.map {
            "\(workPath.barrelsFolder)/\($0)"
        }
    }

    private static func read(path: String) throws -> BarrelRecord {
        let bytes = try FileIO.contents(of: path, limit: maxSize)
        return try bytes.withUnsafeBytes { file in
            func damaged(_ reason: String) -> DownloadError {
                DownloadError(.corruptInfo, "The barrel file \(path) is damaged: \(reason).")
            }
            guard let headerEnd = file.firstIndex(of: 0x0a) else { throw damaged("it has no header") }
            let header = try StoreJSON.decode(
                Header.self, from: UnsafeRawBufferPointer(rebasing: file[..<headerEnd]))
            guard header.format <= format else {
                throw DownloadError(
                    .laterVersion, "\(path) has format \(header.format); this program knows \(format).")
            }
            let body = UnsafeRawBufferPointer(rebasing: file[(headerEnd + 1)...])
            guard CRC32C.checksum(body) == header.crc else { throw damaged("its checksum is wrong") }
            guard let descriptionEnd = body.firstIndex(of: 0x0a) else { throw damaged("it has no description") }
            var barrel = try StoreJSON.decode(
                BarrelRecord.self, from: UnsafeRawBufferPointer(rebasing: body[..<descriptionEnd]))
            barrel.options.options = barrel.options.options?.clamped()
            let lines = UnsafeRawBufferPointer(rebasing: body[(descriptionEnd + 1)...])
            guard let members = members(lines, count: header.count) else { throw damaged("a line is not a member") }
            barrel.members = members
            return barrel
        }
    }

    private static func members(_ lines: UnsafeRawBufferPointer, count: Int) -> [BarrelMember]? {
        // The count is checked before memory is allocated: a member needs at least 66 bytes.
        guard count >= 0, count <= lines.count / 66 else { return nil }
        var members: [BarrelMember] = []
        members.reserveCapacity(count)
        lines.withMemoryRebound(to: UInt8.self) { lines in
            var start = 0
            while start + 66 <= lines.count {
                var end = start + 65
                while end < lines.count, lines[end] != 0x0a { end += 1 }
                guard end < lines.count, lines[start + 64] == 0x09,
                    let id = TaskID(hexDigits: UnsafeBufferPointer(rebasing: lines[start..<start + 64]))
                else { return }
                let url = String(decoding: UnsafeBufferPointer(rebasing: lines[start + 65..<end]), as: UTF8.self)
                members.append(BarrelMember(id: id, url: url))
                start = end + 1
            }
        }
        return members.count == count ? members : nil
    }
}
