/// The names of a list so far. Two entries must not use one file.
///
/// It has 96 random bits of each name and each folder, and not the text, because a million names would take 100 MB: 16
/// bytes a slot, in a table that is at most three quarters full. Among ten million names, two that differ have the same
/// bits with a probability of 1 to 10^15.
struct NameBook: Sendable {
    /// The 96 bits of a path.
    private struct Key: Sendable, Equatable {
        let first: UInt64
        let second: UInt32

        init(_ bytes: UnsafeRawBufferPointer) {
            // The hasher has a random key in each process, so that no list can be made to have equal keys.
            var hasher = Hasher()
            hasher.combine(bytes: bytes)
            var other = hasher
            hasher.combine(0 as UInt8)
            other.combine(1 as UInt8)
            first = UInt64(bitPattern: Int64(hasher.finalize()))
            second = UInt32(truncatingIfNeeded: other.finalize())
        }
    }

    /// A path of the list.
    private struct Slot: Sendable {
        var first: UInt64 = 0
        var second: UInt32 = 0
        /// Zero in an empty slot; otherwise the line, and two bits: it is used, it is a folder.
        var mark: UInt32 = 0

        var line: Int { Int(mark >> 2) }
        var isFolder: Bool { mark & 2 != 0 }

        init() {}

        init(_ key: Key, line: Int, isFolder: Bool) {
            first = key.first
            second = key.second
            // Lines are for messages only.
            mark = UInt32(min(line, 1 << 30 - 1)) << 2 | (isFolder ? 2 : 0) | 1
        }
    }

    /// A power of two, or none.
    private var slots: [Slot] = []
    private var count = 0
    /// The size of the table.
    var bytes: Int { slots.count * MemoryLayout<Slot>.stride }

    /// The position of an equal name; nil for a new one.
    subscript(name: String) -> Int? {
        var name = name
        let found = name.withUTF8 { find(Key(UnsafeRawBufferPointer($0))) }
        return found.flatMap { $0.isFolder ? nil : $0.line }
    }

    /// Registers a name.
    ///
    /// - Parameters:
    ///   - name: a `plain` and valid name.
    ///   - line: its line in the list.
    /// - Returns: the reason why it conflicts with an earlier name; nil if it does not.
    mutating func add(_ name: String, line: Int) -> String? {
        var name = name
        return name.withUTF8 { add(UnsafeRawBufferPointer($0), line) }
    }

    private mutating func add(_ name: UnsafeRawBufferPointer, _ line: Int) -> String? {
        let key = Key(name)
        if let other = find(key) {
            return other.isFolder
                ? "line \(other.line) needs a folder of this name" : "line \(other.line) has the same name"
        }
        var folder = name
        var parents: [Key] = []
        while let slash = folder.lastIndex(of: UInt8(ascii: "/")) {
            folder = UnsafeRawBufferPointer(rebasing: folder[..<slash])
            let parent = Key(folder)
            if let other = find(parent) {
                guard other.isFolder else { return "line \(other.line) is a file where this name needs a folder" }
                break
            }
            parents.append(parent)
        }
        insert(Slot(key, line: line, isFolder: false))
        for parent in parents { insert(Slot(parent, line: line, isFolder: true)) }
        return nil
    }

    private func find(_ key: Key) -> Slot? {
        guard !slots.isEmpty else { return nil }
        var index = Int(truncatingIfNeeded: key.first) & (slots.count - 1)
        while slots[index].mark != 0 {
            if slots[index].first == key.first, slots[index].second == key.second { return slots[index] }
            index = (index + 1) & (slots.count - 1)
        }
        return nil
    }

    private mutating func insert(_ slot: Slot) {
        if (count + 1) * 4 > slots.count * 3 {
            let old = slots
            slots = Array(repeating: Slot(), count: max(64, old.count * 2))
            for slot in old where slot.mark != 0 { place(slot) }
        }
        place(slot)
        count += 1
    }

    private mutating func place(_ slot: Slot) {
        var index = Int(truncatingIfNeeded: slot.first) & (slots.count - 1)
        while slots[index].mark != 0 { index = (index + 1) & (slots.count - 1) }
        slots[index] = slot
    }
}
