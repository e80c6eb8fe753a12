import FKMiddleware
import Foundation

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
    /// - Parameter id: the id of the task's record, which `Places.id` computes. The description's own id is another one below
    ///   a base that has moved.
    /// - Throws: `.noSpace` or `.disk`.
    package static func store(_ task: inout TaskDescription, as id: TaskID, in workPath: WorkPath) throws {
        guard let pieces = task.optionsBox?.value.pieces, pieces.bytes != nil else { return }
        try write(pieces, workPath.digestsPath(id))
        task.options.pieces = pieces.summary
    }

    /// Writes digests. A file with the same ones stays.
    package static func write(_ pieces: PieceDigests, _ path: String) throws {
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
    package static func bytes(_ pieces: PieceDigests) -> [UInt8] {
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
    package static func parse(_ bytes: [UInt8], _ algorithm: Checksum.Algorithm) -> PieceDigests? {
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
        guard let summary = record.task.optionsBox?.value.pieces else { return nil }
        return PieceDigestFile.read(home(of: record.id).digestsPath(record.id), of: summary)
    }
}
