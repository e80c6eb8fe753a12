/// A partial file of another program whose bytes a task has taken over (`TaskOptions.adopts`). The file itself is never written to.
package struct AdoptedFile: Codable, Sendable, Hashable {
    /// The absolute path.
    package var path: String
    /// The file when it was read.
    package var read: FileIdentity
    /// True while its bytes count as received. A server that has other ones, a digest and a lost part file end it.
    package var isInUse: Bool

    package init(path: String, read: FileIdentity, isInUse: Bool) {
        (self.path, self.read, self.isInUse) = (path, read, isInUse)
    }
}

extension TaskRecord {
    /// The file whose bytes were taken over, or proved to be others; nil without one.
    package var adopted: AdoptedFile? { own.adopted }

    /// The part file has the bytes of another program's file.
    ///
    /// - Parameters:
    ///   - ranges: the ranges with their bytes; empty if none of them count.
    ///   - length: the length of the whole file, if the other program has recorded it.
    package mutating func adopt(_ file: AdoptedFile, _ ranges: [SavedRange], length: Int64?) {
        own.adopted = file
        guard file.isInUse else { return }
        own.ranges = ranges
        own.expected = length
    }
}

extension TaskRecord.Fields {
    /// The bytes of the adopted file count no more.
    mutating func disown() { if adopted != nil { adopted?.isInUse = false } }
}
