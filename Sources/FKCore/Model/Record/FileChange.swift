import FKMiddleware

/// A response middleware has changed the finished file. The digests of what was received say nothing of it any more.
package struct FileChange: Codable, Sendable, Hashable {
    /// The names of the middlewares.
    package var by: String
    /// The length of the file after the chain, in bytes.
    package var length: Int64
    /// The CRC-32C of the file after the chain, as eight hexadecimal digits.
    package var crc32c: String

    /// Creates a change.
    package init(by: String, length: Int64, crc32c: String) {
        self.by = by
        self.length = length
        self.crc32c = crc32c
    }

    /// The reason why no engine has written this; nil if it is valid.
    var fault: String? {
        length < 0 || (try? Checksum(.crc32c, hex: crc32c)) == nil
            ? "the checksum of the changed file is impossible" : nil
    }
}

extension TaskRecord {
    /// A response middleware has changed the finished file.
    package mutating func change(_ change: FileChange) {
        own.changed = change
        own.pieces = nil
    }

    /// The change of the finished file by response middlewares; nil without one.
    package var changed: FileChange? { own.changed }

    /// The length of the finished file.
    package var fileLength: Int64? { changed?.length ?? expected }

    /// The digest that the finished file must have: after a change the one of what was left, else the task's own, else that of a
    /// server; nil without one.
    package var fileDigest: Checksum? {
        if let changed { return try? Checksum(.crc32c, hex: changed.crc32c) }
        return task.optionsBox?.value.checksum ?? validator?.digest
    }
}
