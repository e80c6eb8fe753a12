import FKMiddleware
import Foundation

/// Reads and writes barrels, one file each. A file is replaced as a whole: written aside and renamed. To a long one, members
/// that join are appended, so that one of them does not cost megabytes.
///
/// ```text
/// {"format":2,"count":2,"crc":305419896}          CRC-32C of the description and of `count` members
/// {"name":"books","created":…,"options":{…}}
/// <64 hexadecimal digits> TAB <URL>               one line per member, in order
/// <64 hexadecimal digits> TAB <URL>
/// +1 92 2864434397                                members, bytes and CRC-32C of the lines that were appended together
/// <64 hexadecimal digits> TAB <URL>
/// ```
///
/// The members are lines instead of one JSON document, so that 100,000 of them are read in milliseconds. A file to which nothing
/// was appended has format 1. Appended lines that are not complete do not count: they are being written, or their process was
/// killed.
package enum BarrelFile {
    static let format = 2
    /// Larger files are not read.
    package static let maxSize = 1 << 30

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
        try write(barrel, count: barrel.members.count, in: workPath) { body in
            for member in barrel.members {
                var url = member.url
                try url.withUTF8 { try body(member.id, $0) }
            }
        }.size
    }

    /// Writes a barrel whose members are not in memory.
    ///
    /// - Parameters:
    ///   - barrel: the barrel; its members are not used.
    ///   - count: the number of members.
    ///   - forEach: passes the id and the URL of each member to its argument, in order. It is called twice, because the
    ///     checksum comes first, and passes the same ones each time.
    /// - Throws: same as the other `write`; the error of `forEach`.
    /// - Returns: the number of bytes written, and the offset of the first member's line.
    package static func write(
        _ barrel: BarrelRecord, count: Int, in workPath: WorkPath,
        forEach: ((TaskID, UnsafeBufferPointer<UInt8>) throws -> Void) throws -> Void
    ) throws -> (size: Int, begin: Int) {
        try barrel.name.validateAsBarrelName()
        var stored = barrel
        stored.options.store(by: workPath.places)
        var description = try StoreJSON.encode(stored)
        description.append(0x0a)
        /// Passes the description and the lines of the members to `take`, in portions.
        func lines(after begin: [UInt8], _ take: @escaping (UnsafeRawBufferPointer) throws -> Void) throws {
            var text = begin
            text.reserveCapacity(min(count, 4_096) * 128 + begin.count)
            try forEach { id, url in
                guard !url.contains(0x0a) else {
                    throw DownloadError(
                        .invalidArgument, "A URL cannot hold a line feed.", url: String(decoding: url, as: UTF8.self))
                }
                text.append(contentsOf: id.hex.utf8)
                text.append(0x09)
                text.append(contentsOf: url)
                text.append(0x0a)
                if text.count >= portion {
                    try text.withUnsafeBytes(take)
                    text.removeAll(keepingCapacity: true)
                }
            }
            if !text.isEmpty { try text.withUnsafeBytes(take) }
        }
        var crc = CRC32C()
        try lines(after: description) { crc.update($0) }
        var header = try StoreJSON.encode(Header(format: 1, count: count, crc: crc.value))
        header.append(0x0a)
        let path = workPath.barrelPath(barrel.name)
        let aside = path + ".new"
        var size = 0
        try FileIO.replace(
            path, aside: aside,
            by: {
                try FileIO.create(aside) { descriptor in
                    try lines(after: header + description) { bytes in
                        try FileIO.write(bytes, to: descriptor, at: size, path: aside)
                        size += bytes.count
                    }
                }
            })
        if count < FinishedIndex.leastCount { unlink(workPath.donePath(barrel.name)) }
        return (size, header.count + description.count)
    }

    /// Where members can be appended to a barrel's file.
    package struct End: Sendable, Hashable {
        /// The length of the file in bytes.
        package var size: Int
        /// Its length when it was written as a whole.
        package var base: Int

        /// Creates an end; the default is that of a file to which nothing was appended.
        package init(size: Int, base: Int? = nil) {
            self.size = size
            self.base = base ?? size
        }
    }

    /// Appends members to a barrel's file. A kill leaves the file as it was, or with all of them.
    ///
    /// - Parameters:
    ///   - lines: the lines of the members.
    ///   - end: the end of the file. What is behind it was not appended completely, and is cut off.
    ///   - file: the open file in which the caller has found that end.
    /// - Returns: the offset of the first line, and the new end; nil if another file has the name.
    /// - Throws: `.noSpace` or `.disk`. Nothing is appended then.
    package static func append(
        _ lines: [UInt8], count: Int, to name: String, at end: End, of file: Int32, in workPath: WorkPath
    ) throws -> (begin: Int, end: End)? {
        let path = workPath.barrelPath(name)
        let descriptor = try FileIO.open(path, O_RDWR)
        defer { FileIO.close(descriptor) }
        var named = stat()
        var known = stat()
        guard fstat(descriptor, &named) == 0, fstat(file, &known) == 0 else {
            throw DownloadError(system: errno, "read", path)
        }
        guard named.st_ino == known.st_ino, named.st_dev == known.st_dev, named.st_size >= off_t(end.size) else {
            return nil
        }
        if named.st_size > off_t(end.size), ftruncate(descriptor, off_t(end.size)) != 0 {
            throw DownloadError(system: errno, "cut", path)
        }
        try setFormat(descriptor, path)
        let crc = lines.withUnsafeBytes { CRC32C.checksum($0) }
        let head = Array("+\(count) \(lines.count) \(crc)\n".utf8)
        do {
            try (head + lines).withUnsafeBytes { try FileIO.write($0, to: descriptor, at: end.size, path: path) }
        } catch {
            _ = ftruncate(descriptor, off_t(end.size))
            throw error
        }
        let begin = end.size + head.count
        return (begin, End(size: begin + lines.count, base: end.base))
    }

    /// Makes the first line say that members may be appended. One byte changes, so the line is right at every moment.
    private static func setFormat(_ descriptor: Int32, _ path: String) throws {
        let key = Array("\"format\":1".utf8)
        var line = [UInt8](repeating: 0, count: 128)
        let count = try line.withUnsafeMutableBytes { try FileIO.read(into: $0, from: descriptor, at: 0, path: path) }
        line = Array(line[..<count].prefix { $0 != 0x0a })
        guard let place = line.firstRange(of: key) else { return }
        try [UInt8(ascii: "2")].withUnsafeBytes {
            try FileIO.write($0, to: descriptor, at: place.upperBound - 1, path: path)
        }
    }

    /// The bytes that are written at once.
    private static let portion = 1 << 20

    /// Reads a barrel.
    ///
    /// - Throws: `.notFound`, `.corruptInfo`, `.laterVersion` or `.disk`.
    package static func read(_ name: String, in workPath: WorkPath) throws -> BarrelRecord {
        try named(name) { try read(path: workPath.barrelPath(name), workPath) }
    }

    /// Reads a barrel without keeping its members.
    ///
    /// - Parameters:
    ///   - began: called with the number of members, before the first one.
    ///   - member: receives the id, the URL and the offset of the line of each member, in order. Its results are valid only if
    ///     no error is thrown, because the checksum is compared at the end.
    /// - Returns: the barrel without members.
    /// - Throws: same as `read`; the error of `member`.
    package static func scan(
        _ name: String, in workPath: WorkPath, began: (Int) -> Void = { _ in },
        _ member: (TaskID, UnsafeBufferPointer<UInt8>, Int) throws -> Void
    ) throws -> BarrelRecord {
        try scanToEnd(name, in: workPath, began: began, member).barrel
    }

    /// Reads a barrel without keeping its members, same as `scan`.
    ///
    /// - Returns: the barrel, the end of its file, and whether lines follow that were not appended completely.
    package static func scanToEnd(
        _ name: String, in workPath: WorkPath, began: (Int) -> Void = { _ in },
        _ member: (TaskID, UnsafeBufferPointer<UInt8>, Int) throws -> Void
    ) throws -> (barrel: BarrelRecord, end: End, isTorn: Bool) {
        var end = End(size: 0, base: 0)
        var isTorn = false
        let barrel = try named(name) {
            let scanned = try scan(path: workPath.barrelPath(name), workPath, began: began, member)
            (end, isTorn) = (scanned.end, scanned.isTorn)
            return scanned.barrel
        }
        return (barrel, end, isTorn)
    }

    private static func named(_ name: String, _ read: () throws -> BarrelRecord) throws -> BarrelRecord {
        do {
            let barrel = try read()
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
    ///
    /// - Throws: `.disk` if the folder of the barrels cannot be listed.
    package static func list(in workPath: WorkPath) throws -> [String] {
        try paths(in: workPath).compactMap { path in
            let stem = path.lastPathPart.dropLast(".barrel".count)
            // Foundation's own decoding drops a byte order mark.
            if !stem.contains("%~"), let name = stem.percentDecoded { return name }
            return try? scan(path: path, nil, began: { _ in }) { _, _, _ in }.barrel.name
        }.sorted()
    }

    /// All barrels, oldest first. An unreadable file is moved to the quarantine and reported; a file of a later
    /// version is reported and stays. Only for the process that owns the engine.
    package static func readAll(in workPath: WorkPath) throws -> (barrels: [BarrelRecord], problems: [DownloadError]) {
        var barrels: [BarrelRecord] = []
        var problems: [DownloadError] = []
        for path in try paths(in: workPath) {
            do {
                let barrel = try read(path: path, workPath)
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
        unlink(workPath.donePath(name))
        unlink(workPath.listingPath(name))
        return try FileIO.remove(workPath.barrelPath(name))
    }

    // MARK: The mark of a change

    /// Marks that members are joining or leaving. While the mark exists, the records of the tasks are newer than the
    /// barrel's file.
    package static func mark(_ name: String, in workPath: WorkPath) throws {
        let empty: [UInt8] = []
        do {
            try empty.withUnsafeBytes { try FileIO.create(markPath(name, in: workPath), $0) }
        } catch let error as DownloadError where error.code == .fileExists {}
    }

    /// True if members are joining or leaving, or were when their process ended.
    package static func isMarked(_ name: String, in workPath: WorkPath) -> Bool {
        access(markPath(name, in: workPath), F_OK) == 0
    }

    /// Removes that mark.
    package static func removeMark(_ name: String, in workPath: WorkPath) { unlink(markPath(name, in: workPath)) }

    private static func markPath(_ name: String, in workPath: WorkPath) -> String {
        workPath.barrelPath(name) + ".changing"
    }

    // MARK: Inside

    private static func paths(in workPath: WorkPath) throws -> [String] {
        try FileIO.names(in: workPath.barrelsFolder).filter { $0.hasSuffix(".barrel") }.map {
            "\(workPath.barrelsFolder)/\($0)"
        }
    }

    private static func read(path: String, _ workPath: WorkPath) throws -> BarrelRecord {
        var members: [BarrelMember] = []
        var barrel = try scan(path: path, workPath, began: { members.reserveCapacity($0) }) { id, url, _ in
            members.append(BarrelMember(id: id, url: String(decoding: url, as: UTF8.self)))
        }.barrel
        barrel.members = members
        return barrel
    }

    /// Reads a barrel's file from its beginning to its end, a portion at a time: a barrel of a million members has 100 MB,
    /// and their ids alone have 32.
    ///
    /// - Parameter workPath: the one of the places; nil leaves them as they are stored.
    private static func scan(
        path: String, _ workPath: WorkPath?, began: (Int) -> Void,
        _ member: (TaskID, UnsafeBufferPointer<UInt8>, Int) throws -> Void
    ) throws -> (barrel: BarrelRecord, end: End, isTorn: Bool) {
        let descriptor = try FileIO.open(path, O_RDONLY)
        defer { FileIO.close(descriptor) }
        func damaged(_ reason: String) -> DownloadError {
            DownloadError(.corruptInfo, "The barrel file \(path) is damaged: \(reason).")
        }
        var status = stat()
        guard fstat(descriptor, &status) == 0 else { throw DownloadError(system: errno, "read", path) }
        guard status.st_size <= off_t(maxSize) else {
            throw DownloadError(.tooLarge, "\(path) has \(status.st_size) bytes; at most \(maxSize) are read.")
        }
        let lines = LineReader(path, descriptor)
        guard let header = try lines.next({ try StoreJSON.decode(Header.self, from: UnsafeRawBufferPointer($0)) })
        else {
            throw damaged("it has no header")
        }
        guard header.format <= format else {
            throw DownloadError(
                .laterVersion, "\(path) has format \(header.format); this program knows \(format).")
        }
        lines.startChecksum()
        let head = try lines.next { line in
            Result { try StoreJSON.decode(BarrelRecord.self, from: UnsafeRawBufferPointer(line)) }
        }
        // The count is checked before memory is allocated: a member needs at least 66 bytes.
        var isWhole = header.count >= 0 && header.count <= Int(status.st_size) / 66
        if isWhole { began(header.count) }
        var count = 0
        var offset = lines.offset
        while header.format == 1 || count < header.count,
            let isMember = try lines.next({ line -> Bool in
                guard isWhole, count < header.count else { return false }
                return try pass(line, offset, member)
            })
        {
            offset = lines.offset
            if isMember { count += 1 } else { isWhole = false }
            if !isMember, header.format > 1 { break }
        }
        guard lines.checksum == header.crc, header.format > 1 || !lines.hasRest else {
            throw damaged("its checksum is wrong")
        }
        guard var barrel = try head?.get() else { throw damaged("it has no description") }
        guard isWhole, count == header.count else { throw damaged("a line is not a member") }
        if let workPath { barrel.options = try workPath.withPlaces { try barrel.options.resolved(by: $0) } }
        barrel.options.options = barrel.options.options?.clamped()
        let size = Int(status.st_size)
        var end = End(size: offset, base: offset)
        if header.format > 1 {
            while let next = try appended(descriptor, path, at: end.size, of: size, member) { end.size = next }
        }
        return (barrel, end, end.size < size)
    }

    /// Passes on the members that were appended together.
    ///
    /// - Returns: the offset behind them; nil at the end, and if they are not complete.
    private static func appended(
        _ descriptor: Int32, _ path: String, at offset: Int, of size: Int,
        _ member: (TaskID, UnsafeBufferPointer<UInt8>, Int) throws -> Void
    ) throws -> Int? {
        guard offset < size else { return nil }
        var head = [UInt8](repeating: 0, count: min(64, size - offset))
        let count = try head.withUnsafeMutableBytes {
            try FileIO.read(into: $0, from: descriptor, at: offset, path: path)
        }
        guard head.first == UInt8(ascii: "+"), let end = head[..<count].firstIndex(of: 0x0a) else { return nil }
        let numbers = String(decoding: head[1..<end], as: UTF8.self).split(separator: " ")
        let begin = offset + end + 1
        guard numbers.count == 3, let members = Int(numbers[0]), let length = Int(numbers[1]),
            let crc = UInt32(numbers[2]), members > 0, length > 0, length <= size - begin
        else { return nil }
        var lines = [UInt8](repeating: 0, count: length)
        let read = try lines.withUnsafeMutableBytes {
            try FileIO.read(into: $0, from: descriptor, at: begin, path: path)
        }
        guard read == length, lines.withUnsafeBytes({ CRC32C.checksum($0) }) == crc else { return nil }
        try lines.withUnsafeBufferPointer { lines in
            var start = 0
            while let feed = lines[start...].firstIndex(of: 0x0a) {
                _ = try pass(UnsafeBufferPointer(rebasing: lines[start..<feed]), begin + start, member)
                start = feed + 1
            }
        }
        return begin + length
    }

    /// Passes on the member of a line. Returns false if the line is none.
    private static func pass(
        _ line: UnsafeBufferPointer<UInt8>, _ offset: Int,
        _ member: (TaskID, UnsafeBufferPointer<UInt8>, Int) throws -> Void
    ) throws -> Bool {
        guard line.count >= 65, line[64] == 0x09,
            let id = TaskID(hexDigits: UnsafeBufferPointer(rebasing: line[..<64]))
        else { return false }
        try member(id, UnsafeBufferPointer(rebasing: line[65...]), offset)
        return true
    }
}

extension WorkPath {
    /// The settings of a barrel, with the errors of `BarrelFile.read`.
    package func options(ofBarrel name: String) throws -> BarrelOptions {
        try BarrelFile.scan(name, in: self) { _, _, _ in }.options
    }
}
