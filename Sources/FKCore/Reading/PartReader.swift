import FKEngine
import FKMiddleware
import Foundation

/// Reads the bytes of a task in order, from any offset, while they arrive. Used by one Swift task at a time.
///
/// ```text
/// next -> source: wait for bytes -> (compare the piece of a list) -> read -> (digest of a stream) -> chunk
/// ```
///
/// It never gives bytes of two versions of a file: when received bytes were dropped, it ends with an error, unless none was read.
final class PartReader {
    /// The maximum number of bytes of a chunk.
    static let chunk = 256 << 10
    /// The pieces of a list up to this size stay in the processor's cache between the comparison and the reading.
    private static let buffer = 1 << 20

    private let source: any ByteSource
    /// The offset after the last byte that is wanted; nil for the end of the file.
    private let end: Int64?
    private(set) var position: Int64
    private let start: Int64
    private var file: ReadFile?
    private var generation: Int?
    /// Bytes before it can be read, and were compared if the list has digests of pieces.
    private var ready: Int64
    /// The length of the file; nil while unknown.
    private(set) var length: Int64?
    private var pieces: PieceDigests?
    private var digester: Digester?
    private var expected: Checksum?
    private var hasBegun = false
    private(set) var isOver = false

    init(_ source: any ByteSource, from start: Int64, to end: Int64? = nil) {
        self.source = source
        self.end = end
        self.start = start
        position = start
        ready = start
    }

    deinit { source.close() }

    /// The next bytes, at most `chunk`; nil at the end.
    ///
    /// - Throws: the error of the task; `.changedOnServer` or `.incompleteBody` if the file that was begun cannot be continued;
    ///   `.checksumMismatch` at the end of a stream whose digest differs; `.cancelled`.
    func next(isolation: isolated (any Actor)? = #isolation) async throws(DownloadError) -> Data? {
        if isOver { return nil }
        do throws(DownloadError) {
            guard position < end ?? .max, try await prepare(waitsForEnd: true) else {
                try finish()
                isOver = true
                source.close()
                return nil
            }
            let data = try read(Int(min(Int64(Self.chunk), min(ready, end ?? .max) - position)))
            guard let data else { return try await again() }
            append(data)
            return data
        } catch {
            isOver = true
            source.close()
            throw error
        }
    }

    /// Bytes from the present position on: `count` of them, or fewer at the end of the file.
    func read(exactly count: Int, isolation: isolated (any Actor)? = #isolation) async throws(DownloadError) -> Data {
        var result = Data()
        while result.count < count {
            guard try await prepare(waitsForEnd: false) else { break }
            guard let data = try read(Int(min(Int64(count - result.count), ready - position))) else {
                ready = position
                continue
            }
            if result.isEmpty { result = data } else { result.append(data) }
            append(data)
        }
        return result
    }

    /// False if received bytes were dropped: others may have taken their place while they were read.
    private var isCurrent: Bool { generation.map { source.isCurrent($0, at: position) } ?? false }

    /// The bytes that were read do not count.
    private func again(isolation: isolated (any Actor)? = #isolation) async throws(DownloadError) -> Data? {
        ready = position
        return try await next()
    }

    private func append(_ data: Data) {
        if let digester { data.withUnsafeBytes { digester.update($0) } }
        position += Int64(data.count)
        source.moved(to: position)
    }

    // MARK: Waiting

    /// Waits for bytes that may be read.
    ///
    /// - Returns: false at the end of the file.
    private func prepare(
        waitsForEnd: Bool, isolation: isolated (any Actor)? = #isolation
    ) async throws(DownloadError) -> Bool {
        while position >= ready {
            let piece = pieceRange
            let view = try await source.next(
                at: piece?.lowerBound ?? position,
                need: piece?.upperBound ?? (pieces != nil && length == nil ? .max : position + 1),
                generation: generation, waitsForEnd: waitsForEnd)
            length = view.length ?? length
            if let generation, generation < view.lostAt {
                guard position == start else {
                    throw view.dropReason ?? view.failure ?? DownloadError(.changedOnServer, "The file has changed.")
                }
                file = nil
            }
            generation = view.file == nil && file == nil ? nil : view.generation
            file = view.file ?? file
            begin(view)
            if let pieces, let length, !pieces.fit(length) {
                throw DownloadError(
                    .changedOnServer,
                    "The file is not the one of the list: it has \(length.plural("byte")), and the list has "
                        + "\(pieces.count) pieces of \(pieces.length).")
            }
            if try await settle(view, waitsForEnd: waitsForEnd) { return position < ready }
        }
        return true
    }

    /// - Returns: false if another look is needed; true at the end, or if bytes are ready.
    private func settle(
        _ view: ReadView, waitsForEnd: Bool, isolation: isolated (any Actor)? = #isolation
    ) async throws(DownloadError) -> Bool {
        if let piece = pieceRange {
            if view.available >= piece.upperBound, file != nil { return try await prove(piece) }
        } else if pieces == nil, view.available > position, file != nil {
            ready = view.available
            return true
        }
        let isEnd = length.map { position >= $0 } ?? false
        if isEnd, view.isFinal { return true }
        if let failure = view.failure { throw failure }
        return isEnd && !waitsForEnd
    }

    /// Takes what the first answer says about the file.
    private func begin(_ view: ReadView) {
        if pieces == nil, let summary = view.pieces {
            pieces = source.digests(of: summary)
        }
        guard !hasBegun, view.available > position || view.length != nil else { return }
        hasBegun = true
        guard source.isStream, start == 0, end == nil, let digest = view.digest else { return }
        guard digest.algorithm != .gitBlob || view.length != nil else { return }
        expected = digest
        digester = Digester(digest.algorithm, length: view.length ?? 0)
    }

    // MARK: Pieces

    /// The piece of the list that has the next byte; nil without digests, at the end of the file, and for the last piece while the
    /// length is unknown.
    private var pieceRange: Range<Int64>? {
        guard let pieces else { return nil }
        let index = Int(clamping: position / pieces.length)
        guard let length else { return index < pieces.count - 1 ? pieces.range(index, of: .max) : nil }
        return position < length ? pieces.range(index, of: length) : nil
    }

    /// Compares a piece that has arrived.
    ///
    /// - Returns: false if it is wrong, and is fetched again.
    private func prove(
        _ range: Range<Int64>, isolation: isolated (any Actor)? = #isolation
    ) async throws(DownloadError) -> Bool {
        guard let pieces, let file else { return false }
        let index = Int(range.lowerBound / pieces.length)
        let digester = Digester(pieces.algorithm, length: Int64(range.count))
        let buffer = UnsafeMutableRawBufferPointer.allocate(byteCount: Self.buffer, alignment: 4096)
        defer { buffer.deallocate() }
        var offset = range.lowerBound
        while offset < range.upperBound {
            let wanted = Int(min(Int64(buffer.count), range.upperBound - offset))
            let count = try file.read(into: UnsafeMutableRawBufferPointer(rebasing: buffer[..<wanted]), at: offset)
            guard count > 0 else { break }
            digester.update(UnsafeRawBufferPointer(rebasing: buffer[..<count]))
            offset += Int64(count)
        }
        if digester.bytes() == pieces[index] {
            ready = range.upperBound
            return true
        }
        if isCurrent { await source.refuse(piece: index) }
        return false
    }

    // MARK: Reading

    /// - Returns: nil if received bytes were dropped meanwhile, which also makes the file shorter.
    private func read(_ count: Int) throws(DownloadError) -> Data? {
        guard let file else { throw DownloadError(.notFound, "The task has no file.") }
        guard let base = malloc(max(1, count)) else {
            throw DownloadError(.disk, "There is no memory for \(count.plural("byte")).")
        }
        let buffer = UnsafeMutableRawBufferPointer(start: base, count: count)
        do throws(DownloadError) {
            guard try file.read(into: buffer, at: position) == count else {
                throw DownloadError(.destination, "The file was truncated while it was read.")
            }
        } catch {
            free(base)
            if isCurrent { throw error }
            return nil
        }
        guard isCurrent else {
            free(base)
            return nil
        }
        return Data(bytesNoCopy: base, count: count, deallocator: .free)
    }

    // MARK: The end

    private func finish() throws(DownloadError) {
        if let length, start > length {
            throw DownloadError(
                .badRange, "The range begins at byte \(start), and the file has \(length.plural("byte")).")
        }
        guard let expected, let digester else { return }
        let digest = digester.hex()
        guard digest != expected.hex else { return }
        throw DownloadError(
            .checksumMismatch,
            "The file is not the one expected: its \(expected.algorithm.rawValue) is \(digest), not \(expected.hex).")
    }
}
