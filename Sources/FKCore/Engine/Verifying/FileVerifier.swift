import FKMiddleware
import Foundation

/// The result of reading a finished file again.
public struct VerifiedFile: Sendable, Hashable, Identifiable {
    /// What was found.
    public enum Result: String, Codable, Sendable, Hashable, CaseIterable {
        /// The file has its digest, or the bytes that were received.
        case right
        /// It differs, or reading it fails.
        case damaged
        /// There is no file.
        case missing
        /// Nothing is known that it could be compared with, or this user may not read it.
        case unverifiable
    }

    /// The task.
    public var id: TaskID
    /// The URL of the task, percent-encoded.
    public var url: String
    /// The absolute path of the file; nil if the record has none.
    package var path: String?
    /// The file; nil if the record has none.
    public var file: URL? { path.map { URL(fileURLWithPath: $0) } }
    /// What was found.
    public var result: Result
    /// The damaged bytes, in order and without overlaps. For a damaged file they are empty if it is not known where the
    /// damage is; the whole file is fetched again then.
    public var damaged: [Range<Int64>]
    /// What was compared, or why the file is damaged or unverifiable, for people.
    public var reason: String
    /// True if a repair of the file has failed.
    package var hasFailedRepair = false
    /// True if this user may not read the file.
    package var isUnreadable = false
    /// The file that the record describes.
    package var written: FileIdentity?
}

/// Reads finished files again and compares them with what is known about them.
///
/// | known | right if |
/// | --- | --- |
/// | a response middleware has changed the file | it is as the middleware left it; digests of what was received do not count |
/// | a digest: the task's, or the server's | the file has it |
/// | a list's digests of its pieces | all of them are equal |
/// | checksums of its pieces, computed while it arrived | all of them are equal |
/// | neither, or this user may not read the file | it is unverifiable |
///
/// If the digest differs, the pieces tell where. The list's count before our own. It reads without an engine, and changes nothing.
package struct FileVerifier: Sendable {
    private let reader: StoreReader

    /// Creates a verifier for the tasks of a work path.
    package init(_ workPath: WorkPath) { self.init(StoreReader(workPath)) }

    /// Creates a verifier for the tasks of a reader, those of its shards included.
    package init(_ reader: StoreReader) { self.reader = reader }

    /// Verifies the file of one task.
    package func verify(_ task: TaskRecord) -> VerifiedFile {
        let record = task.ofFinished
        var file = VerifiedFile(
            id: record.id, url: record.task.url, path: record.path, result: .missing, damaged: [],
            reason: "there is no file")
        file.written = record.written
        file.hasFailedRepair = task.state == .error && task.former?.damaged != nil
        guard let path = record.path else { return file }
        let content: OpenFile
        do {
            content = try OpenFile(path, followingLinks: record.isForeign == true)
        } catch let error as DownloadError {
            if error.code == .notFound { return file }
            (file.result, file.reason) = (.damaged, error.message)
            // Its bytes may be right. A repair could not read them either.
            if access(path, R_OK) != 0, errno == EACCES {
                (file.result, file.isUnreadable) = (.unverifiable, true)
                file.reason = "it cannot be read: \(String(cString: strerror(EACCES)))"
            }
            return file
        } catch {
            (file.result, file.reason) = (.damaged, "\(error)")
            return file
        }
        let change = record.changed
        let checksum = record.fileDigest
        let listed = change == nil ? reader.pieceDigests(of: record) : nil
        let pieces = change == nil ? pieces(of: record) : nil
        guard checksum != nil || pieces != nil || listed != nil else {
            (file.result, file.reason) = (.unverifiable, "neither a digest nor checksums of its pieces are known")
            if record.expected == 0, content.length == 0 { (file.result, file.reason) = (.right, "it is empty") }
            if let expected = record.expected, content.length != expected, record.isForeign != true {
                (file.result, file.reason) = (.damaged, "it has \(content.length) of \(expected) bytes")
            }
            return file
        }
        do {
            if let listed, let length = record.expected, listed.fit(length) {
                (file.result, file.damaged, file.reason) = try content.compare(
                    checksum, ListedCheck(listed, length: length), expected: length)
            } else {
                (file.result, file.damaged, file.reason) = try content.compare(
                    checksum, SumCheck(pieces ?? []), expected: record.fileLength)
            }
            if let change, file.result == .right { file.reason = "it is as \(change.by) has left it" }
        } catch {
            (file.result, file.reason) = (.damaged, (error as? DownloadError)?.message ?? "\(error)")
        }
        return file
    }

    /// The checksums of the pieces of the file as the task left it; nil without any.
    package func pieces(of record: TaskRecord) -> [PieceChecksum]? {
        guard record.isForeign != true, let length = record.expected, length > 0, let written = record.written else {
            return nil
        }
        if let file = PieceFile.read(reader.home(of: record.id).piecesPath(record.id), of: written) {
            return file.sums.enumerated().map { index, sum in
                let range = PieceSums.range(index, of: length)
                return PieceChecksum(start: range.lowerBound, end: range.upperBound, crc32c: sum)
            }
        }
        return PieceChecksum.covering(record.pieces, length: length)
    }
}

extension FileVerifier {
    /// Compares a file with the digests that a list gives for its pieces.
    ///
    /// - Returns: the difference as a text; nil if all pieces are right.
    /// - Throws: `.destination` if the file cannot be read.
    package static func fault(of path: String, _ pieces: PieceDigests) throws(DownloadError) -> String? {
        do {
            let content = try OpenFile(path)
            guard pieces.fit(content.length) else {
                return "its \(content.length.plural("byte")) are not the \(pieces.count.plural("piece")) of the list"
            }
            let check = ListedCheck(pieces, length: content.length)
            let (result, _, reason) = try content.compare(nil, check, expected: nil)
            return result == .right ? nil : reason
        } catch {
            throw DownloadError(wrapping: error, code: .destination, message: "\(path) cannot be compared.")
        }
    }
}

/// A file that is being read.
private final class OpenFile {
    let path: String
    let descriptor: Int32
    let length: Int64

    /// - Parameter followingLinks: true for a file that the task did not write, which may be a symbolic link; the default is
    ///   false.
    init(_ path: String, followingLinks: Bool = false) throws {
        self.path = path
        let target = followingLinks ? realpath(path, nil) : nil
        defer { free(target) }
        descriptor = try FileIO.open(target.map { String(cString: $0) } ?? path, O_RDONLY, isOwn: false)
        var status = stat()
        guard fstat(descriptor, &status) == 0 else {
            FileIO.close(descriptor)
            throw DownloadError(system: errno, "read", path)
        }
        length = Int64(status.st_size)
    }

    deinit { FileIO.close(descriptor) }

    /// Reads the file once.
    ///
    /// - Parameter checks: of its pieces, in order.
    func compare<Check: PieceCheck>(
        _ checksum: Checksum?, _ checks: Check, expected: Int64?
    ) throws -> (VerifiedFile.Result, [Range<Int64>], String) {
        var checks = checks
        let digester = checksum.map { Digester($0.algorithm, length: length) }
        let buffer = UnsafeMutableRawBufferPointer.allocate(
            byteCount: Int(PieceSums.pieceLength), alignment: 4096)
        defer { buffer.deallocate() }
        var damaged: [Range<Int64>] = []
        var offset: Int64 = 0
        /// Reads up to `end`, and adds the bytes to the digests.
        func read(to end: Int64, isPiece: Bool) throws {
            while offset < end {
                let wanted = UnsafeMutableRawBufferPointer(
                    rebasing: buffer[..<Int(min(end - offset, Int64(buffer.count)))])
                let count = try FileIO.read(into: wanted, from: descriptor, at: Int(offset), path: path)
                if count == 0 { return }
                let bytes = UnsafeRawBufferPointer(rebasing: wanted[..<count])
                digester?.update(bytes)
                if isPiece { checks.update(bytes) }
                offset += Int64(count)
            }
        }
        var isShort = false
        for index in 0..<checks.count {
            let piece = checks.range(index)
            // Pieces of one connection each may overlap; only those in order are of use here.
            guard piece.lowerBound == offset else { continue }
            checks.begin(index)
            try read(to: piece.upperBound, isPiece: true)
            if offset < piece.upperBound { isShort = true }
            if isShort || !checks.isRight(index) { damaged.append(piece) }
            if isShort { offset = piece.upperBound }
        }
        if !isShort { try read(to: .max, isPiece: false) }
        let isLengthRight = expected.map { $0 == length } ?? true
        guard isLengthRight else {
            return (.damaged, Self.joined(damaged), "it has \(length) of \(expected ?? 0) bytes")
        }
        if let checksum, let digester {
            let name = checksum.algorithm.rawValue
            let digest = digester.hex()
            if !isShort, digest == checksum.hex { return (.right, [], "its \(name) is right") }
            return (.damaged, Self.joined(damaged), "its \(name) is \(digest), not \(checksum.hex)")
        }
        if damaged.isEmpty { return (.right, [], checks.rightReason) }
        let verb = damaged.count == 1 ? "differs" : "differ"
        return (
            .damaged, Self.joined(damaged),
            "\(damaged.count) of \(checks.count.plural("piece")) \(verb) from \(checks.source)"
        )
    }

    private static func joined(_ ranges: [Range<Int64>]) -> [Range<Int64>] {
        var joined: [Range<Int64>] = []
        for range in ranges {
            if let last = joined.last, last.upperBound == range.lowerBound {
                joined[joined.count - 1] = last.lowerBound..<range.upperBound
            } else {
                joined.append(range)
            }
        }
        return joined
    }
}

/// Compares the pieces of a file, one after another.
private protocol PieceCheck {
    var count: Int { get }
    /// What is said of a file whose pieces are all right.
    var rightReason: String { get }
    /// What the pieces are compared with.
    var source: String { get }
    /// The bytes of a piece.
    func range(_ index: Int) -> Range<Int64>
    /// Begins a piece.
    mutating func begin(_ index: Int)
    /// Adds bytes to the present piece.
    mutating func update(_ bytes: UnsafeRawBufferPointer)
    /// True if the present piece has its digest.
    func isRight(_ index: Int) -> Bool
}

/// The checksums of the received bytes.
private struct SumCheck: PieceCheck {
    private let pieces: [PieceChecksum]
    private var crc = CRC32C()

    init(_ pieces: [PieceChecksum]) { self.pieces = pieces }

    var count: Int { pieces.count }
    var rightReason: String { "it has the bytes that were received" }
    var source: String { "what was received" }
    func range(_ index: Int) -> Range<Int64> { pieces[index].start..<pieces[index].end }
    mutating func begin(_ index: Int) { crc = CRC32C() }
    mutating func update(_ bytes: UnsafeRawBufferPointer) { crc.update(bytes) }
    func isRight(_ index: Int) -> Bool { crc.value == pieces[index].crc32c }
}

/// The digests of a list.
private struct ListedCheck: PieceCheck {
    private let digests: PieceDigests
    private let length: Int64
    private var digester: Digester

    init(_ digests: PieceDigests, length: Int64) {
        self.digests = digests
        self.length = length
        digester = Digester(digests.algorithm)
    }

    var count: Int { digests.count }
    var rightReason: String { "its pieces have the list's \(digests.algorithm.rawValue)" }
    var source: String { "the list" }
    func range(_ index: Int) -> Range<Int64> { digests.range(index, of: length) }
    mutating func begin(_ index: Int) {
        let range = range(index)
        digester = Digester(digests.algorithm, length: range.upperBound - range.lowerBound)
    }
    mutating func update(_ bytes: UnsafeRawBufferPointer) { digester.update(bytes) }
    func isRight(_ index: Int) -> Bool { digester.bytes() == digests[index] }
}

extension VerifiedFile: CustomStringConvertible {
    /// The result, the id, the URL with its secrets masked, and the reason.
    public var description: String { "VerifiedFile(\(result), \(id.short), \(url.masked): \(reason))" }
}

extension StoreReader {
    /// Verifies the finished files of these tasks: of complete ones, and of those whose refresh or repair has not ended. It reads
    /// on all processors, and holds a few hundred records at a time.
    ///
    /// - Parameters:
    ///   - problem: called for each unreadable info file.
    ///   - each: receives the results in order. It returns false to stop.
    package func verify(
        _ ids: [TaskID], problem: (DownloadError) -> Void, each: (VerifiedFile) -> Bool
    ) {
        let verifier = FileVerifier(self)
        var rest = ids[...]
        while !rest.isEmpty {
            let portion = Array(rest.prefix(256))
            rest = rest.dropFirst(256)
            let records = records(portion, problem: problem).filter(\.hasFinished)
            for result in records.mappedInParallel({ verifier.verify($0) }) where !each(result) { return }
        }
    }
}
