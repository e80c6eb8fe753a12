import FKMiddleware
import Foundation

/// The members of a barrel, in the order in which they joined.
///
/// A long barrel takes about 50 bytes for each member: its URLs stay in the barrel's file, which is open, and only those of
/// members that joined since the last save are in memory. `insert` and `remove` are O(1) on average.
package struct BarrelMembers {
    /// The number of a member is its place. A removed member leaves a hole; holes are removed once they are half of all
    /// places.
    private var table = TaskIDTable(reusesNumbers: false)
    /// Where the line or the URL of each member begins: in the file, or below 0 as `~offset` in `texts`.
    private var offsets: [Int32] = []
    /// URLs, each after its length in 4 bytes.
    private var texts: [UInt8] = []
    private var file: File?
    /// Where `file` ends, and the number of places that are in it; nil if the file has to be written as a whole.
    private var saved: (end: BarrelFile.End, places: Int)?
    /// True if the file ends in members that were not appended completely, so that the tasks' records say more.
    package private(set) var isTorn = false

    /// The URLs of a barrel of at most this many members stay in memory.
    package static let countInMemory = 4_096
    private static let hole = Int32.min
    /// The bytes of URLs beyond which a barrel that is repaired is written.
    private static let textsInMemory = 8 << 20

    /// The file that has the lines. It stays readable when another one takes its name.
    private final class File: Sendable {
        let path: String
        let descriptor: Int32

        init(_ path: String) throws {
            self.path = path
            descriptor = try FileIO.open(path, O_RDONLY)
        }

        deinit { FileIO.close(descriptor) }
    }

    package init() {}

    package init(_ members: [BarrelMember]) {
        table.reserveCapacity(members.count)
        for member in members { _ = insert(member) }
    }

    /// Reads the members of a barrel's file.
    ///
    /// - Returns: the barrel without members, and the members.
    /// - Throws: same as `BarrelFile.read`.
    package static func read(_ name: String, in workPath: WorkPath) throws -> (BarrelRecord, BarrelMembers) {
        var members = BarrelMembers()
        // Opened first: only the engine writes the file, and its process is the engine.
        let file = try? File(workPath.barrelPath(name))
        var isLong = false
        let (barrel, end, isTorn) = try BarrelFile.scanToEnd(
            name, in: workPath,
            began: { count in
                isLong = count > countInMemory && file != nil
                members.table.reserveCapacity(count)
                members.offsets.reserveCapacity(count)
            },
            { id, url, offset in
                if isLong {
                    members.insert(id, at: Int32(offset))
                } else {
                    members.insert(id, at: members.keep(url))
                }
            })
        members.isTorn = isTorn
        if isLong {
            members.file = file
            if !isTorn { members.saved = (end, members.offsets.count) }
        }
        return (barrel, members)
    }

    package var count: Int { table.count }
    /// The bytes of URLs in memory.
    var textCount: Int { texts.count }
    package func contains(_ id: TaskID) -> Bool { table.contains(id) }

    /// The number of places of members; some may be empty.
    var placeCount: Int { offsets.count }

    /// The member at a place; nil if the place is empty.
    package func id(at place: Int) -> TaskID? { offsets[place] == Self.hole ? nil : table.id(of: Int32(place)) }

    /// The ids in order.
    package var ids: [TaskID] {
        var ids: [TaskID] = []
        ids.reserveCapacity(count)
        for number in offsets.indices where offsets[number] != Self.hole { ids.append(table.id(of: Int32(number))) }
        return ids
    }

    /// Adds a member. Returns false if it is one already.
    package mutating func insert(_ member: BarrelMember) -> Bool {
        guard !table.contains(member.id) else { return false }
        var url = member.url
        let offset = url.withUTF8 { keep($0) }
        insert(member.id, at: offset)
        return true
    }

    private mutating func insert(_ id: TaskID, at offset: Int32) {
        // A file with a member twice has it once.
        let number = Int(table.insert(id))
        if number == offsets.count { offsets.append(offset) }
    }

    private mutating func keep(_ url: UnsafeBufferPointer<UInt8>) -> Int32 {
        let offset = ~Int32(texts.count)
        withUnsafeBytes(of: UInt32(url.count).littleEndian) { texts.append(contentsOf: $0) }
        texts.append(contentsOf: url)
        return offset
    }

    /// Removes a member. Returns false if it is none.
    package mutating func remove(_ id: TaskID) -> Bool {
        guard let number = table.remove(id) else { return false }
        saved = nil
        offsets[Int(number)] = Self.hole
        if offsets.count > 2 * table.count { closeHoles() }
        return true
    }

    private mutating func closeHoles() {
        var closed = BarrelMembers()
        closed.file = file
        closed.table.reserveCapacity(count)
        for number in offsets.indices where offsets[number] != Self.hole {
            let offset = offsets[number]
            closed.insert(
                table.id(of: Int32(number)),
                at: offset < 0 ? texts.withUnsafeBufferPointer { closed.keep(Self.url($0, ~offset)) } : offset)
        }
        self = closed
    }

    private static func url(_ texts: UnsafeBufferPointer<UInt8>, _ offset: Int32) -> UnsafeBufferPointer<UInt8> {
        let length = UnsafeRawBufferPointer(texts).loadUnaligned(fromByteOffset: Int(offset), as: UInt32.self)
        let begin = Int(offset) + 4
        return UnsafeBufferPointer(rebasing: texts[begin..<begin + Int(UInt32(littleEndian: length))])
    }

    /// Passes each member with its URL to `body`, in order.
    ///
    /// - Throws: `.corruptInfo` or `.disk` if the file cannot be read; the error of `body`.
    package func forEach(_ body: (TaskID, UnsafeBufferPointer<UInt8>) throws -> Void) throws {
        var lines: LineReader?
        try texts.withUnsafeBufferPointer { texts in
            for number in offsets.indices where offsets[number] != Self.hole {
                let id = table.id(of: Int32(number))
                let offset = offsets[number]
                guard offset >= 0 else {
                    try body(id, Self.url(texts, ~offset))
                    continue
                }
                guard let file else { throw DownloadError(.corruptInfo, "The barrel has no file.") }
                let reader = lines ?? LineReader(file.path, file.descriptor, from: Int(offset))
                lines = reader
                // The lines of removed members.
                while reader.offset < Int(offset), try reader.next({ _ in }) != nil {}
                let isRight = try reader.next { line in
                    guard line.count >= 65, TaskID(hexDigits: UnsafeBufferPointer(rebasing: line[..<64])) == id else {
                        return false
                    }
                    try body(id, UnsafeBufferPointer(rebasing: line[65...]))
                    return true
                }
                guard isRight == true else {
                    throw DownloadError(.corruptInfo, "The barrel file \(file.path) was changed by another program.")
                }
            }
        }
    }

    /// The members.
    ///
    /// - Throws: same as `forEach`.
    package func all() throws -> [BarrelMember] {
        var members: [BarrelMember] = []
        members.reserveCapacity(count)
        try forEach { members.append(BarrelMember(id: $0, url: String(decoding: $1, as: UTF8.self))) }
        return members
    }

    /// Makes the members those that the records of tasks name, for a process that was killed between writing those and the
    /// barrel.
    ///
    /// Tasks whose record names the barrel join it, in the order of submission. A member leaves if its record does not name the
    /// barrel, or if its info file is missing and not in the quarantine. It reads every record of the work path, and writes the
    /// barrel's file whenever many URLs of new members are in memory.
    ///
    /// - Throws: same as `BarrelFile.write`.
    mutating func reconcile(with barrel: BarrelRecord, in workPath: WorkPath) throws {
        let reader = StoreReader(workPath)
        let ids = try workPath.allTaskIDs()
        var joined: [(number: UInt64, place: Int32)] = []
        reader.readAll(ids, problem: { _ in }) { place, record in
            let isNamed = record.barrels.containsExactly(barrel.name)
            if !isNamed { _ = remove(record.id) }
            if isNamed, !contains(record.id) { joined.append((record.number, Int32(place))) }
        }
        var there = TaskIDTable()
        for id in ids { there.insert(id) }
        // `<time>-<id>.info`
        for name in try FileIO.names(in: workPath.quarantineFolder) {
            if let id = TaskID(hex: String(name.suffix(69).prefix(64))) { there.insert(id) }
        }
        let missing = offsets.indices.compactMap { id(at: $0) }.filter { !there.contains($0) }
        for id in missing { _ = remove(id) }
        joined.sort { $0.number < $1.number }
        for start in stride(from: 0, to: joined.count, by: Self.countInMemory) {
            let portion = joined[start..<min(start + Self.countInMemory, joined.count)].map { ids[Int($0.place)] }
            reader.readAll(portion, problem: { _ in }) { _, record in
                _ = insert(BarrelMember(id: record.id, url: record.task.url))
            }
            if texts.count > Self.textsInMemory { _ = try write(barrel, in: workPath) }
        }
    }

    /// Appends the members that have joined since the last save to the file of a long barrel. When those that were appended are
    /// half as long as the rest, the file is to be written as a whole again.
    ///
    /// - Returns: the number of bytes written; nil if the file has to be written as a whole.
    /// - Throws: same as `BarrelFile.append`.
    package mutating func append(to name: String, in workPath: WorkPath) throws -> Int? {
        guard let file, let saved, offsets.count > saved.places else { return nil }
        var lines: [UInt8] = []
        var begins: [Int] = []
        let isValid = texts.withUnsafeBufferPointer { texts in
            for number in saved.places..<offsets.count {
                let offset = offsets[number]
                guard offset < 0 else { return false }
                let url = Self.url(texts, ~offset)
                guard !url.contains(0x0a) else { return false }
                begins.append(lines.count)
                lines.append(contentsOf: table.id(of: Int32(number)).hex.utf8)
                lines.append(0x09)
                lines.append(contentsOf: url)
                lines.append(0x0a)
            }
            return true
        }
        guard isValid, saved.end.size + lines.count - saved.end.base <= saved.end.base / 2,
            saved.end.size + lines.count < Int(Int32.max) - 64,
            let appended = try BarrelFile.append(
                lines, count: begins.count, to: name, at: saved.end, of: file.descriptor, in: workPath)
        else { return nil }
        for (index, begin) in begins.enumerated() { offsets[saved.places + index] = Int32(appended.begin + begin) }
        texts = []
        self.saved = (appended.end, offsets.count)
        return appended.end.size - saved.end.size
    }

    /// Writes the barrel's file. The URLs of a long barrel are then in it, and not in memory.
    ///
    /// - Returns: the number of bytes written.
    /// - Throws: same as `BarrelFile.write`.
    package mutating func write(_ barrel: BarrelRecord, in workPath: WorkPath) throws -> Int {
        isTorn = false
        let (size, begin) = try BarrelFile.write(barrel, count: count, in: workPath) { try forEach($0) }
        guard count > Self.countInMemory, size < Int(Int32.max), let new = try? File(workPath.barrelPath(barrel.name))
        else { return size }
        var moved = BarrelMembers()
        moved.table.reserveCapacity(count)
        moved.offsets.reserveCapacity(count)
        var offset = begin
        try forEach { id, url in
            moved.insert(id, at: Int32(offset))
            offset += 66 + url.count
        }
        moved.file = new
        moved.saved = (BarrelFile.End(size: size), moved.offsets.count)
        self = moved
        return size
    }
}
