import FKMiddleware

/// One part of a list that several machines divide among themselves.
///
/// A task belongs to the shard that the first 16 digits of its id fall into. The assignment depends on the task and the
/// count alone: not on its place in the list, and not on the other tasks.
package struct Shard: Sendable, Hashable, CustomStringConvertible {
    /// The largest possible count.
    package static let maxCount = 1_000_000

    /// The number of this shard, 1 to `count`.
    package let index: Int
    /// The number of shards, 1 to `maxCount`.
    package let count: Int

    /// Creates a shard; nil for an impossible one.
    package init?(_ index: Int, of count: Int) {
        guard (1...Self.maxCount).contains(count), (1...count).contains(index) else { return nil }
        self.index = index
        self.count = count
    }

    /// The shard that a task belongs to.
    package init(of id: TaskID, count: Int) {
        self.count = max(1, min(count, Self.maxCount))
        // The ids are hashes, so equal intervals of them have equally many tasks.
        index = Int(id.leadingWord.multipliedFullWidth(by: UInt64(self.count)).high) + 1
    }

    /// Parses `3/8`; nil for any other text and for an impossible shard.
    package init?(parsing text: some StringProtocol) {
        let parts = text.utf8.split(separator: UInt8(ascii: "/"), omittingEmptySubsequences: false)
        guard parts.count == 2, let index = Self.number(parts[0]), let count = Self.number(parts[1]) else { return nil }
        self.init(index, of: count)
    }

    /// Parses the name of a shard's folder, `3-of-8`; nil for any other text.
    package init?(folder name: String) {
        let parts = name.split(separator: "-", omittingEmptySubsequences: false)
        guard parts.count == 3, parts[1] == "of", let index = Self.number(parts[0].utf8),
            let count = Self.number(parts[2].utf8)
        else { return nil }
        self.init(index, of: count)
    }

    private static func number(_ digits: some Collection<UInt8>) -> Int? {
        guard (1...7).contains(digits.count), digits.allSatisfy({ (0x30...0x39).contains($0) }), digits.first != 0x30
        else { return nil }
        return digits.reduce(0) { $0 * 10 + Int($1 - 0x30) }
    }

    package func contains(_ id: TaskID) -> Bool { Self(of: id, count: count).index == index }

    /// `3/8`
    package var description: String { "\(index)/\(count)" }
    /// The name of its folder: `3-of-8`.
    package var folder: String { "\(index)-of-\(count)" }
}

extension WorkPath {
    /// The folder of the shards' work paths and plans.
    package var shardsFolder: String { "\(root)/\(Self.shardsName)" }
    private static let shardsName = "shards"

    /// The work path of a shard. Each shard has its own, so that no lock is shared between machines.
    package func shard(_ shard: Shard) -> WorkPath { related("\(shardsFolder)/\(shard.folder)") }

    /// The work path whose shard this is; itself if it is no shard.
    package var ofShards: WorkPath { Self.outer(of: root).map(related) ?? self }

    /// The root of the work path whose shard has this root; nil for any other root.
    static func outer(of root: String) -> String? {
        let folder = root.folderPart
        guard Shard(folder: root.lastPathPart) != nil, folder.lastPathPart == shardsName else { return nil }
        return folder.folderPart
    }

    /// Creates the folder of the shards.
    ///
    /// - Throws: `.noSpace` or `.disk`.
    package func makeShardsFolder() throws { try FileIO.makeFolder(shardsFolder) }

    /// The shards that have a work path below this one, sorted by count and index.
    ///
    /// - Throws: `.disk` if their folder cannot be listed.
    package func shards() throws -> [Shard] {
        try FileIO.names(in: shardsFolder).compactMap(Shard.init(folder:)).sorted {
            ($0.count, $0.index) < ($1.count, $1.index)
        }
    }
}
