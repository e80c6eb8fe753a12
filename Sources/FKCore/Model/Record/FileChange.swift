import FKMiddleware

/// A response middleware has changed the finished file. The digests of what was received say nothing of it any more.
package struct FileChange: Codable, Sendable, Hashable {
    /// The names of the middlewares.
    package var by: String
    /// The length of the file after the chain, in bytes.
    package var length: Int64
    /// The CRC-32C of the file after the chain, as eight hexadecimal digits.
    package var crc32c: String

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

    /// The length with which the task left its finished file, to compare it with the one at its place. nil for a file that the task did not
    /// write, and if the record does not tell: a response middleware may leave a symbolic link, whose length is another one.
    package var lengthLeft: Int64? {
        guard isForeign != true else { return nil }
        if let changed { return changed.length }
        return written?.length == expected ? expected : nil
    }

    /// The digest that the finished file must have: after a change the one of what was left, else the task's own, else that of a
    /// server; nil without one.
    package var fileDigest: Checksum? {
        if let changed { return try? Checksum(.crc32c, hex: changed.crc32c) }
        return task.optionsBox?.value.checksum ?? validator?.digest
    }
}
