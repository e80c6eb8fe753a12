import FKMiddleware
import Foundation

/// The digests that a list gives for the pieces of a file. A task with them refuses wrong pieces while they arrive.
///
/// A request has the digests in `bytes`. They are written to a file beside the info file (`PieceDigestFile`), and the record
/// keeps the rest.
package struct PieceDigests: Codable, Sendable, Hashable {
    /// The algorithm of the digests.
    package var algorithm: Checksum.Algorithm
    /// The length in bytes of every piece except the last, at least 1.
    package var length: Int64
    /// The number of pieces.
    package var count: Int
    /// The CRC-32C of all digests, which binds the file of digests to the record.
    package var crc32c: UInt32
    /// All digests in order; nil in a record.
    package var bytes: Data?

    /// The maximum length of all digests of a file in bytes: 16 MiB, enough for 512 GiB with SHA-256 and pieces of 1 MiB.
    package static let maxBytes = 16 << 20

    /// Creates digests.
    ///
    /// - Parameter bytes: all digests in order. Returns nil if they are none, too long, or not a multiple of a digest.
    package init?(_ algorithm: Checksum.Algorithm, length: Int64, bytes: some Collection<UInt8>) {
        guard length > 0, !bytes.isEmpty, bytes.count <= Self.maxBytes, bytes.count % algorithm.byteCount == 0 else {
            return nil
        }
        self.algorithm = algorithm
        self.length = length
        count = bytes.count / algorithm.byteCount
        let data = Data(bytes)
        crc32c = data.withUnsafeBytes { CRC32C.checksum($0) }
        self.bytes = data
    }

    /// Creates digests from those of a list; nil if they are too long.
    package init?(_ pieces: Manifest.Pieces) {
        guard let algorithm = Checksum.Algorithm(rawValue: pieces.algorithm.rawValue) else { return nil }
        self.init(algorithm, length: pieces.length, bytes: pieces.bytes)
    }

    /// The digests as a record keeps them.
    package var summary: PieceDigests {
        var summary = self
        summary.bytes = nil
        return summary
    }

    /// True if a file of this length has that many pieces.
    package func fit(_ total: Int64) -> Bool {
        guard total > 0 else { return false }
        return (total - 1) / length + 1 == Int64(count)
    }

    /// The bytes of a piece in a file of this length.
    package func range(_ index: Int, of total: Int64) -> Range<Int64> {
        let start = Int64(index) * length
        return start..<(total - start < length ? total : start + length)
    }

    /// The digest of a piece; nil without `bytes`.
    package subscript(index: Int) -> [UInt8]? {
        bytes.map { Array($0.dropFirst(index * algorithm.byteCount).prefix(algorithm.byteCount)) }
    }

    /// The reason why these are no digests, for a description from another program; nil if they are valid.
    package var fault: String? {
        guard let bytes else { return nil }
        guard let same = PieceDigests(algorithm, length: length, bytes: bytes), same == self else {
            return "the digests of its pieces contradict each other"
        }
        return nil
    }
}

extension Manifest.Pieces {
    /// The digests for a list; nil if they are not in memory.
    init?(_ digests: PieceDigests) {
        guard let algorithm = ManifestDigest.Algorithm(rawValue: digests.algorithm.rawValue), let bytes = digests.bytes
        else { return nil }
        self.init(length: digests.length, algorithm: algorithm, bytes: Array(bytes))
    }
}

/// The digests of a file's pieces, in a file beside the info file: `<id>.digests`.
///
/// ```text
/// "FKdigest"  8 bytes       version  4 bytes (1)      length of a digest  4 bytes
/// length of a piece  8      number of pieces  8
/// the digests
/// CRC-32C of everything before it, 4 bytes
/// ```
///
/// All numbers are little-endian. It is written before the info file that refers to it, and not written aside: a torn file
/// counts as none.
package enum PieceDigestFile {
    private static let magic = Array("FKdigest".utf8)
    private static let headLength = 32

    /// Writes the digests of a description to their file, and leaves their summary in the description.
    ///
    /// - Throws: `.noSpace` or `.disk`.
    static func store(_ task: inout TaskDescription, in workPath: WorkPath) throws {
        guard task.hasOptions, let pieces = task.options.pieces, pieces.bytes != nil else { return }
        try write(pieces, workPath.digestsPath(task.id))
        task.options.pieces = pieces.summary
    }

    /// Writes digests. A file with the same ones stays.
    static func write(_ pieces: PieceDigests, _ path: String) throws {
        let bytes = bytes(pieces)
        func create() throws { try bytes.withUnsafeBytes { try FileIO.create(path, $0) } }
        do {
            // Nearly always there is none.
            try create()
        } catch let error as DownloadError where error.code == .fileExists {
            if read(path, of: pieces.summary) != nil { return }
            unlink(path)
            try create()
        } catch let error as DownloadError where error.code == .notFound {
            try FileIO.makeFolder(path.folderPart)
            try create()
        }
    }

    /// The digests that belong to a summary; nil if there are none, or if they are damaged or others.
    package static func read(_ path: String, of summary: PieceDigests) -> PieceDigests? {
        guard (1...PieceDigests.maxBytes).contains(summary.count) else { return nil }
        let length = headLength + summary.count * summary.algorithm.byteCount + 4
        guard let bytes = try? FileIO.contents(of: path, limit: length), let pieces = parse(bytes, summary.algorithm),
            pieces.summary == summary.summary
        else { return nil }
        return pieces
    }

    /// The whole file.
    static func bytes(_ pieces: PieceDigests) -> [UInt8] {
        var bytes = magic
        func append(_ number: some FixedWidthInteger, to bytes: inout [UInt8]) {
            withUnsafeBytes(of: number.littleEndian) { bytes.append(contentsOf: $0) }
        }
        append(UInt32(1), to: &bytes)
        append(UInt32(pieces.algorithm.byteCount), to: &bytes)
        append(pieces.length, to: &bytes)
        append(UInt64(pieces.count), to: &bytes)
        bytes += pieces.bytes ?? Data()
        let crc = bytes.withUnsafeBytes { CRC32C.checksum($0) }
        append(crc, to: &bytes)
        return bytes
    }

    /// Parses a file; nil if it is damaged, of another version, or of an algorithm with another length.
    static func parse(_ bytes: [UInt8], _ algorithm: Checksum.Algorithm) -> PieceDigests? {
        guard bytes.count >= headLength + 4, bytes.starts(with: magic) else { return nil }
        let fields = bytes.withUnsafeBytes { buffer in
            func load<Number: FixedWidthInteger>(_ offset: Int, _ type: Number.Type) -> Number {
                Number(littleEndian: buffer.loadUnaligned(fromByteOffset: offset, as: type))
            }
            return (
                version: load(8, UInt32.self), digest: load(12, UInt32.self), piece: load(16, Int64.self),
                count: load(24, UInt64.self), crc: load(buffer.count - 4, UInt32.self),
                own: CRC32C.checksum(UnsafeRawBufferPointer(rebasing: buffer.dropLast(4)))
            )
        }
        guard fields.version == 1, fields.digest == UInt32(algorithm.byteCount), fields.crc == fields.own,
            let pieces = PieceDigests(algorithm, length: fields.piece, bytes: bytes[headLength..<bytes.count - 4]),
            UInt64(pieces.count) == fields.count
        else { return nil }
        return pieces
    }
}

extension StoreReader {
    /// The digests that a list has given for the pieces of a task's file; nil without any, or if their file is lost.
    package func pieceDigests(of record: TaskRecord) -> PieceDigests? {
        guard record.task.hasOptions, let summary = record.task.options.pieces else { return nil }
        return PieceDigestFile.read(workPath.digestsPath(record.id), of: summary)
    }

    /// The digests as lists in JSON have them: an array of one object; nil without any.
    package func piecesJSON(of record: TaskRecord) -> [UInt8]? {
        pieceDigests(of: record).flatMap(Manifest.Pieces.init).map(JSONLine.pieces)
    }
}
