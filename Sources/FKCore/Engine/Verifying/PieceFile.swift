import FKMiddleware
import Foundation

/// The checksums of a finished file's pieces, in a file beside the info file: 4 bytes for each MiB.
///
/// ```text
/// "FKpieces"  8 bytes       version  4 bytes (1)      length of a piece  4 bytes
/// inode  8    length  8     time of the last write  8      number of pieces  8
/// CRC-32C of each piece, 4 bytes each
/// CRC-32C of everything before it, 4 bytes
/// ```
///
/// All numbers are little-endian. The inode, length and time are those of the finished file (`TaskRecord.written`): sums of
/// another file do not count. A file of up to one piece has none: its record has the checksum.
struct PieceFile: Sendable, Hashable {
    /// The file that the sums are of.
    var identity: FileIdentity
    var sums: [UInt32]

    private static let magic = Array("FKpieces".utf8)
    private static let headLength = 48
    /// The most pieces: a file of 64 TiB, whose sums take 256 MiB.
    private static let maxCount = 64 << 20

    /// True for a file that has sums of its own.
    static func isFor(length: Int64) -> Bool {
        length > PieceSums.pieceLength && PieceSums.count(length) <= maxCount
    }

    /// The sums of a task's finished file; nil without any, or if they are damaged or of another file.
    static func read(_ path: String, of identity: FileIdentity) -> PieceFile? {
        let count = PieceSums.count(identity.length)
        guard isFor(length: identity.length),
            let bytes = try? FileIO.contents(of: path, limit: headLength + 4 * count + 4),
            let file = PieceFile(bytes), file.identity.isSame(as: identity), file.sums.count == count
        else { return nil }
        return file
    }

    init(identity: FileIdentity, sums: [UInt32]) {
        self.identity = identity
        self.sums = sums
    }

    /// Parses a file; nil if it is damaged or of another version.
    init?(_ bytes: [UInt8]) {
        guard bytes.count >= Self.headLength + 4, bytes.count % 4 == 0, bytes.starts(with: Self.magic) else {
            return nil
        }
        let fields:
            (version: UInt32, piece: UInt32, inode: UInt64, length: Int64, time: Int64, count: UInt64, crc: UInt32)
        let sums: [UInt32]
        (fields, sums) = bytes.withUnsafeBytes { buffer in
            func load<Number: FixedWidthInteger>(_ offset: Int, _ type: Number.Type) -> Number {
                Number(littleEndian: buffer.loadUnaligned(fromByteOffset: offset, as: type))
            }
            let fields = (
                load(8, UInt32.self), load(12, UInt32.self), load(16, UInt64.self), load(24, Int64.self),
                load(32, Int64.self), load(40, UInt64.self), load(buffer.count - 4, UInt32.self)
            )
            let sums = stride(from: Self.headLength, to: buffer.count - 4, by: 4).map { load($0, UInt32.self) }
            return (fields, sums)
        }
        let crc = bytes.withUnsafeBytes { CRC32C.checksum(UnsafeRawBufferPointer(rebasing: $0.dropLast(4))) }
        guard fields.version == 1, fields.piece == UInt32(PieceSums.pieceLength), fields.crc == crc,
            fields.count == UInt64(sums.count)
        else { return nil }
        identity = FileIdentity(inode: fields.inode, length: fields.length, time: fields.time)
        self.sums = sums
    }

    /// The whole file.
    var bytes: [UInt8] {
        var bytes = Self.magic
        bytes.reserveCapacity(Self.headLength + 4 * sums.count + 4)
        func append(_ number: some FixedWidthInteger, to bytes: inout [UInt8]) {
            withUnsafeBytes(of: number.littleEndian) { bytes.append(contentsOf: $0) }
        }
        append(UInt32(1), to: &bytes)
        append(UInt32(PieceSums.pieceLength), to: &bytes)
        append(identity.inode, to: &bytes)
        append(identity.length, to: &bytes)
        append(identity.time, to: &bytes)
        append(UInt64(sums.count), to: &bytes)
        for sum in sums { append(sum, to: &bytes) }
        let crc = bytes.withUnsafeBytes { CRC32C.checksum($0) }
        append(crc, to: &bytes)
        return bytes
    }

    /// Writes the file in the place of an older one, which is of another finished file. It is not written aside and renamed:
    /// an interrupted call would leave a second file, and a torn file counts as none.
    ///
    /// - Throws: `.noSpace` or `.disk`. There are no sums then.
    func write(_ path: String) throws {
        unlink(path)
        try bytes.withUnsafeBytes { try FileIO.create(path, $0) }
    }
}
