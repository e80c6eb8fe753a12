import FKMiddleware
import Foundation

/// The mark of a published set: a hidden file in its folder that names the files and how they were left.
///
/// It is written last, so a folder with a mark has all of its files. A process that reads or replaces the set locks it.
package struct SetMark: Codable, Sendable, Hashable {
    /// A file of the set.
    package struct File: Codable, Sendable, Hashable {
        /// The path below the folder of the set.
        var name: String
        /// The length in bytes.
        var length: Int64
        /// The time of the last write, in nanoseconds since 1970.
        var time: Int64
        /// The bytes, as the record of the member knows them: a digest, or the member and its last write.
        var content: String
    }

    package static let fileName = ".fk-set"
    private static let format = 1
    private static let maxSize = 256 << 20

    private var format = Self.format
    /// Shared with the work path's `SetRecord`. It also moves with a backup of both.
    var token: String
    var barrel: String
    /// The digest of names, lengths and contents.
    package var version: String
    /// The boot in which the files were written; nil if they were synced.
    var boot: String?
    /// The files, sorted by name.
    var files: [File]

    init(token: String, barrel: String, files: [File], boot: String?) {
        (self.token, self.barrel, self.boot) = (token, barrel, boot)
        self.files = files.sorted { $0.name.utf8.lexicographicallyPrecedes($1.name.utf8) }
        version = Self.version(of: files.map { ($0.name, $0.length, $0.content) })
    }

    /// The version of a set with these names, lengths and contents, in any order.
    static func version(of files: [(name: String, length: Int64, content: String)]) -> String {
        let digester = Digester(.sha256)
        let lines = files.map { Array("\($0.length)\t\($0.content)\t\($0.name)\n".utf8) }
        for line in lines.sorted(by: { $0.lexicographicallyPrecedes($1) }) {
            line.withUnsafeBytes { digester.update($0) }
        }
        return String(digester.hex().prefix(16))
    }

    /// The mark of a folder; nil without a readable one.
    init?(in folder: String) {
        guard let bytes = try? FileIO.contents(of: folder.path(of: Self.fileName), limit: Self.maxSize),
            let mark = try? StoreJSON.decode(Self.self, from: bytes), mark.format <= Self.format
        else { return nil }
        self = mark
    }

    /// True if the system was restarted since the set was published without syncs: a power cut may have taken bytes of its files.
    var mayBeTorn: Bool { boot != nil && boot != BootID.current }

    /// Writes the mark into a folder that has none, and syncs it: it tells the set's files from those of others, also after a power cut that
    /// took their bytes.
    func write(in folder: String) throws {
        let path = folder.path(of: Self.fileName)
        let bytes = try StoreJSON.encode(self)
        try FileIO.create(path) { descriptor in
            try bytes.withUnsafeBytes { try FileIO.write($0, to: descriptor, at: 0, path: path) }
            try FileIO.synchronize(descriptor, path: path)
        }
    }
}

extension SetMark.File {
    /// True if the file is as it was left, by length and time.
    func matches(_ status: stat) -> Bool {
        status.st_mode & S_IFMT == S_IFREG && Int64(status.st_size) == length
            && FileIdentity.isSameTime(status.modificationTime, time)
    }

    /// True if the file is the set's (`FileClaim` for published files).
    ///
    /// | there is | the file is |
    /// | --- | --- |
    /// | nothing, a folder, a symlink, a device | another program's |
    /// | a file with the length and the time of the mark | the set's |
    /// | a file with the length, another time and the digest of the mark: a backup has restored it | the set's |
    /// | a file with the time of the mark and at most its length, and the mark may be torn: a power cut has shortened it | the set's |
    /// | any other file | another program's, unless the new set has the same bytes under its name |
    ///
    /// - Parameter mayBeTorn: true if a power cut may have taken its bytes. Its time then tells that nobody has written to it.
    func isOurs(_ path: String, mayBeTorn: Bool) -> Bool {
        var status = stat()
        guard lstat(path, &status) == 0 else { return false }
        if matches(status) { return true }
        if mayBeTorn, status.st_mode & S_IFMT == S_IFREG, Int64(status.st_size) <= length,
            FileIdentity.isSameTime(status.modificationTime, time)
        {
            return true
        }
        guard status.st_mode & S_IFMT == S_IFREG, Int64(status.st_size) == length, let checksum = strongDigest else {
            return false
        }
        return (try? SetFile.digest(of: path, checksum.algorithm)) == checksum.hex
    }

    /// The digest that proves the bytes; nil without one.
    private var strongDigest: Checksum? {
        let parts = content.split(separator: "=")
        guard parts.count == 2, let algorithm = Checksum.Algorithm(rawValue: String(parts[0])) else { return nil }
        return try? Checksum(algorithm, hex: String(parts[1]))
    }
}

/// What the work path knows of the folder of a barrel: `sets/<barrel>.set`.
///
/// It is written before anything is made beside that folder, so that the leftovers of a killed process are found.
struct SetRecord: Codable, Sendable, Hashable {
    var format = 1
    var barrel: String
    /// Random, in the mark and in the hidden names of this barrel's folders.
    var token: String
    /// The folder that was published last; nil before the first end.
    var folder: String?
    /// Folders beside which something may be left.
    var pending: [String] = []

    init(barrel: String) {
        self.barrel = barrel
        token = String(UInt64.random(in: 1 << 60 ... .max), radix: 16)
    }

    /// The record of a barrel; nil if it was never published.
    ///
    /// - Throws: `.corruptInfo`, `.destination` for a base without a folder here, or `.disk`.
    init?(_ barrel: String, in workPath: WorkPath) throws {
        do {
            let bytes = try FileIO.contents(of: workPath.setPath(barrel), limit: 1 << 20)
            self = try StoreJSON.decode(Self.self, from: bytes)
        } catch let error as DownloadError where error.code == .notFound {
            return nil
        } catch let error as DownloadError where error.code == .corruptInfo {
            throw DownloadError(
                .corruptInfo,
                "\(workPath.setPath(barrel)), which tells where the barrel \(barrel) was published, is damaged: delete it, move the published "
                    + "folder away, and publish again.", underlying: error.message)
        }
        try folder.map { if let other = try workPath.places.resolved($0) { folder = other } }
        pending = try pending.map { try workPath.places.resolved($0) ?? $0 }
    }

    /// Writes the record and syncs it: after a power cut, a folder without its record could never be published again.
    func write(in workPath: WorkPath) throws {
        var stored = self
        let places = workPath.places
        stored.folder = folder.map { places.stored($0) ?? $0 }
        stored.pending = pending.map { places.stored($0) ?? $0 }
        let path = workPath.setPath(barrel)
        let bytes = try StoreJSON.encode(stored)
        try bytes.withUnsafeBytes {
            try FileIO.replace(path, aside: path + ".new", $0) { try FileIO.synchronize(path + ".new") }
        }
    }

    /// Writes the record, which is no use of the set: the time of the file stays.
    func writeWithoutUse(in workPath: WorkPath) throws {
        var status = stat()
        let isKnown = stat(workPath.setPath(barrel), &status) == 0
        try write(in: workPath)
        if isKnown { PublishedSets.markUsed(barrel, in: workPath, at: status.modificationTime) }
    }
}

extension WorkPath {
    /// The record of a barrel's published folder.
    func setPath(_ barrel: String) -> String { "\(setsFolder)/\(barrel.barrelFileName).set" }

    /// The file that is locked while a barrel is published.
    func setLockPath(_ barrel: String) -> String { "\(setsFolder)/\(barrel.barrelFileName).lock" }
}
