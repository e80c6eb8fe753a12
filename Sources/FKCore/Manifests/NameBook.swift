extension Manifest {
    /// The names of a list so far. Two entries must not use one file.
    ///
    /// It has 64 random bits of each name and each folder, and not the text, because a million names would take 100 MB: 16
    /// bytes a slot, in a table that is at most three quarters full. Among a million names, two that differ have the same
    /// bits with a probability of 1 to 10^7; the second one is then refused.
    package struct NameBook: Sendable {
        /// The result of an addition.
        package enum Addition: Equatable {
            case new
            /// An earlier entry has the same name and says the same about the file.
            case same
            /// An earlier entry uses the file for something else.
            case conflict(Conflict)
        }

        /// What an earlier entry uses a file for.
        package struct Conflict: Equatable {
            /// A file of the same name, a folder where a file is, or a file where a folder is needed.
            package enum Kind { case hasName, needsFolder, isFile }

            package let kind: Kind
            /// The number that the earlier entry was given as its line.
            package let line: Int

            /// - Parameter line: the line for the message; nil, the default, is that of the entry.
            package func reason(line: Int? = nil) -> String {
                switch kind {
                case .hasName: "line \(line ?? self.line) has the same name"
                case .needsFolder: "line \(line ?? self.line) needs a folder of this name"
                case .isFile: "line \(line ?? self.line) is a file where this name needs a folder"
                }
            }
        }

        /// The bits of a path.
        private struct Key: Sendable, Equatable {
            let bits: UInt64

            init(_ bytes: UnsafeRawBufferPointer) {
                // The hasher has a random key in each process, so that no list can be made to have equal keys.
                var hasher = Hasher()
                hasher.combine(bytes: bytes)
                bits = UInt64(bitPattern: Int64(hasher.finalize()))
            }
        }

        /// A path of the list.
        private struct Slot: Sendable {
            var bits: UInt64 = 0
            /// The hash of the entry's other facts; 0 for none.
            var content: UInt32 = 0
            /// Zero in an empty slot; otherwise the line, and two bits: it is used, it is a folder.
            var mark: UInt32 = 0

            var line: Int { Int(mark >> 2) }
            var isFolder: Bool { mark & 2 != 0 }

            init() {}

            init(_ key: Key, line: Int, isFolder: Bool, content: UInt32 = 0) {
                bits = key.bits
                self.content = content
                // Lines are for messages only.
                mark = UInt32(min(line, 1 << 30 - 1)) << 2 | (isFolder ? 2 : 0) | 1
            }
        }

        /// A power of two, or none.
        private var slots: [Slot] = []
        private var count = 0
        /// The size of the table.
        var bytes: Int { slots.count * MemoryLayout<Slot>.stride }

        package init() {}

        /// The position of an equal name; nil for a new one.
        subscript(name: String) -> Int? {
            var name = name
            let found = name.withUTF8 { find(Key(UnsafeRawBufferPointer($0))) }
            return found.flatMap { $0.isFolder ? nil : $0.line }
        }

        /// - Parameter name: a `plain` and valid name.
        /// - Returns: the reason why it conflicts with an earlier name; nil if it does not.
        mutating func add(_ name: String, line: Int) -> String? {
            if case .conflict(let conflict) = add(name, line: line, content: 0) { conflict.reason() } else { nil }
        }

        /// Registers a name with what its entry says about the file.
        ///
        /// - Parameter content: `Manifest.FileFacts.contentHash`; 0 is equal to nothing.
        package mutating func add(_ name: String, line: Int, content: UInt32) -> Addition {
            var name = name
            return name.withUTF8 { add(UnsafeRawBufferPointer($0), line, content) }
        }

        private mutating func add(_ name: UnsafeRawBufferPointer, _ line: Int, _ content: UInt32) -> Addition {
            let key = Key(name)
            if let other = find(key) {
                if other.isFolder { return .conflict(Conflict(kind: .needsFolder, line: other.line)) }
                return content != 0 && content == other.content
                    ? .same : .conflict(Conflict(kind: .hasName, line: other.line))
            }
            var folder = name
            var parents: [Key] = []
            while let slash = folder.lastIndex(of: UInt8(ascii: "/")) {
                folder = UnsafeRawBufferPointer(rebasing: folder[..<slash])
                let parent = Key(folder)
                if let other = find(parent) {
                    guard other.isFolder else {
                        return .conflict(Conflict(kind: .isFile, line: other.line))
                    }
                    break
                }
                parents.append(parent)
            }
            insert(Slot(key, line: line, isFolder: false, content: content))
            for parent in parents { insert(Slot(parent, line: line, isFolder: true)) }
            return .new
        }

        private func find(_ key: Key) -> Slot? {
            guard !slots.isEmpty else { return nil }
            var index = Int(truncatingIfNeeded: key.bits) & (slots.count - 1)
            while slots[index].mark != 0 {
                if slots[index].bits == key.bits { return slots[index] }
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
            var index = Int(truncatingIfNeeded: slot.bits) & (slots.count - 1)
            while slots[index].mark != 0 { index = (index + 1) & (slots.count - 1) }
            slots[index] = slot
        }
    }
}
