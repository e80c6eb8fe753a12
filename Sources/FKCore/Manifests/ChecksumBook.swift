import FKMiddleware

/// The files of a checksum list until its end: a later line may have another digest of a file.
///
/// A name and its digests are bytes in blocks of 1 MiB, because a million files as `Manifest.Entry` take 600 MB. A file takes its name,
/// 33 bytes for a SHA-256, and 48 bytes more.
struct ChecksumBook: Sendable {
    private struct Record: Sendable {
        /// The place of its bytes: the name, the size in 8 bytes, its first digests, and an address with its length in 2 bytes.
        var place: UInt32
        var line: UInt32
        var nameLength: UInt16
        /// The number of digests there.
        var digestCount: UInt8
        var parts: Parts
    }

    private struct Parts: OptionSet, Sendable {
        let rawValue: UInt8
        static let size = Parts(rawValue: 1)
        static let address = Parts(rawValue: 2)
        /// The bytes of the name are those of an address.
        static let isAddress = Parts(rawValue: 4)
    }

    private static let blockSize = 1 << 20
    private static let algorithms = Checksum.Algorithm.allCases

    private var blocks: [[UInt8]] = []
    /// The first block that was not released.
    private var firstBlock = 0
    private var records: [Record] = []
    /// The number of records that were handed out.
    private var handedOut = 0
    private var names = Manifest.NameBook()
    /// The digests of later lines, by the position of the file: the place of the last one. Each has the place of the one before it in
    /// 4 bytes, all bits of which are set for none.
    private var laterDigests: [UInt32: UInt32] = [:]
    private var laterSizes: [UInt32: Int64] = [:]

    var count: Int { records.count }

    /// What became of a line.
    enum Addition {
        case new
        /// The file has an earlier line as well.
        case joined
        /// The name is used for something else.
        case conflict(String)
    }

    mutating func add(_ line: ChecksumLine, name: String?, _ number: Int) -> Addition {
        let text = name ?? line.url ?? ""
        let key = name ?? "\u{0}\(text)"
        if let position = names[key] {
            guard self.text(of: records[position]).isExactly(text) else {
                return .conflict("another name has the same hash")
            }
            return join(line, to: position)
        }
        if case .conflict(let conflict) = names.add(key, line: records.count, content: 0) {
            return .conflict(conflict.reason(line: Int(records[conflict.line].line)))
        }
        append(line, name, number)
        return .new
    }

    /// Adds the size of a file that is known; a file that is not is ignored.
    mutating func add(size: Int64, of name: String) {
        if let position = names[name] { laterSizes[UInt32(position)] = size }
    }

    /// True if a file of this name has a digest.
    func knows(_ name: String) -> Bool { names[name] != nil }

    private mutating func join(_ line: ChecksumLine, to position: Int) -> Addition {
        var all = entry(at: position).digests
        for digest in line.digests {
            if all.contains(digest) { continue }
            guard all.add(digest) else {
                return .conflict("line \(records[position].line) gives the same name another digest")
            }
            var bytes: [UInt8] = []
            let last = laterDigests[UInt32(position)] ?? .max
            withUnsafeBytes(of: last) { bytes += $0 }
            Self.write(digest, to: &bytes)
            laterDigests[UInt32(position)] = store(bytes)
        }
        if let size = line.size { laterSizes[UInt32(position)] = size }
        return .joined
    }

    private mutating func append(_ line: ChecksumLine, _ name: String?, _ number: Int) {
        let text = name ?? line.url ?? ""
        var parts: Parts = name == nil ? .isAddress : []
        var bytes = Array(text.utf8)
        if let size = line.size {
            parts.insert(.size)
            withUnsafeBytes(of: size) { bytes += $0 }
        }
        for digest in line.digests { Self.write(digest, to: &bytes) }
        if name != nil, let url = line.url {
            parts.insert(.address)
            withUnsafeBytes(of: UInt16(clamping: url.utf8.count)) { bytes += $0 }
            bytes += url.utf8
        }
        records.append(
            Record(
                place: store(bytes), line: UInt32(clamping: number), nameLength: UInt16(clamping: text.utf8.count),
                digestCount: UInt8(clamping: line.digests.count), parts: parts))
    }

    // MARK: Bytes

    /// Stores bytes and returns their place: 12 bits for the block, 20 for the byte in it.
    private mutating func store(_ bytes: [UInt8]) -> UInt32 {
        if blocks.last.map({ $0.count + bytes.count > Self.blockSize }) ?? true {
            var block: [UInt8] = []
            block.reserveCapacity(Self.blockSize)
            blocks.append(block)
        }
        let block = blocks.count - 1
        defer { blocks[block] += bytes }
        return UInt32(block) << 20 | UInt32(blocks[block].count)
    }

    private static func write(_ digest: Checksum, to bytes: inout [UInt8]) {
        bytes.append(UInt8(algorithms.firstIndex(of: digest.algorithm) ?? 0))
        var high: UInt8?
        for digit in digest.hex.utf8 {
            let value = digit.hexValue ?? 0
            if let first = high { bytes.append(first << 4 | value) }
            high = high == nil ? value : nil
        }
    }

    /// Reads a digest, and moves the index behind it.
    private static func digest(_ block: [UInt8], _ index: inout Int) -> Checksum? {
        let algorithm = algorithms[Int(block[index])]
        let bytes = block[(index + 1)..<(index + 1 + algorithm.byteCount)]
        index += 1 + algorithm.byteCount
        return Checksum(listed: algorithm, hex: Digester.hex(bytes))
    }

    private static func number<Number: FixedWidthInteger>(_ block: [UInt8], _ index: inout Int, _: Number.Type)
        -> Number
    {
        defer { index += MemoryLayout<Number>.size }
        return block.withUnsafeBytes { $0.loadUnaligned(fromByteOffset: index, as: Number.self) }
    }

    private func text(of record: Record) -> String {
        let start = Int(record.place & 0xfffff)
        let block = blocks[Int(record.place >> 20)]
        return String(decoding: block[start..<start + Int(record.nameLength)], as: UTF8.self)
    }

    private func entry(at position: Int) -> Manifest.Entry {
        let record = records[position]
        let block = blocks[Int(record.place >> 20)]
        var index = Int(record.place & 0xfffff) + Int(record.nameLength)
        let text = text(of: record)
        var entry = Manifest.Entry(name: record.parts.contains(.isAddress) ? nil : text, line: Int(record.line))
        if record.parts.contains(.isAddress) { entry.sources = [Manifest.Source(text)] }
        if record.parts.contains(.size) { entry.size = Self.number(block, &index, Int64.self) }
        for _ in 0..<record.digestCount {
            if let digest = Self.digest(block, &index) { _ = entry.digests.add(digest) }
        }
        if record.parts.contains(.address) {
            let length = Int(Self.number(block, &index, UInt16.self))
            entry.sources = [Manifest.Source(String(decoding: block[index..<index + length], as: UTF8.self))]
        }
        var place = laterDigests.isEmpty ? .max : laterDigests[UInt32(position)] ?? .max
        while place != .max {
            let block = blocks[Int(place >> 20)]
            var index = Int(place & 0xfffff)
            place = Self.number(block, &index, UInt32.self)
            if let digest = Self.digest(block, &index) { _ = entry.digests.add(digest) }
        }
        if !laterSizes.isEmpty, let size = laterSizes[UInt32(position)] { entry.size = size }
        return entry
    }

    /// Ends the list: no name is added any more.
    mutating func end() { names = Manifest.NameBook() }

    /// Removes and returns the next files.
    mutating func drain(atMost limit: Int) -> [Manifest.Entry] {
        let end = min(records.count, handedOut + limit)
        guard handedOut < end else { return [] }
        let entries = (handedOut..<end).map(entry)
        handedOut = end
        if end == records.count { (records, blocks, handedOut) = ([], [], 0) }
        // Blocks of first lines alone are not needed any more.
        guard laterDigests.isEmpty, end < records.count else { return entries }
        while firstBlock < Int(records[end].place >> 20) {
            blocks[firstBlock] = []
            firstBlock += 1
        }
        return entries
    }
}
