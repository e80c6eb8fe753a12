import FKEngine
import FKMiddleware
import Foundation

extension Downloader {
    /// Streams a file that nobody keeps: it gets no name, its bytes are given in order while they arrive, and nothing of it stays.
    ///
    /// ```swift
    /// for try await chunk in try await downloader.stream(url, checksum: digest) { unpacker.feed(chunk) }
    /// ```
    ///
    /// Lost connections are resumed, and several connections are used as for any file (`Configure.connections`), within a window: at
    /// most `window` bytes and 64 KiB are on the disk, ahead of the reader. A reader that does not read pauses the server.
    ///
    /// A stream is no task of this downloader: it has no slot in the queue, and `Configure.rateLimit` counts for the streams by
    /// themselves. Request and download middlewares see it; response middlewares do not, because there is no finished file.
    ///
    /// - Parameters:
    ///   - file: an address, or a builder, whose folder, name and existing-file policy do not count.
    ///   - checksum: the digest that the whole file must have; nil, the default, takes that of the builder, else the one that the server
    ///     announces. A wrong one throws `.checksumMismatch` after the last byte.
    ///   - range: the bytes to stream; nil, the default, for all of them. An end behind that of the file is the end of the file. A part of
    ///     the file is not compared with a digest of the whole.
    ///   - window: bytes on the disk, 1 MiB to 1 TiB, the nearest of them outside; the default is 64 MiB.
    /// - Returns: the bytes, for one iteration. Its end, or the end of the iteration, ends the stream.
    /// - Throws: `.invalidURL` or `.unsupportedScheme`; `.invalidArgument` for a signature, and for a range that is empty or begins below 0;
    ///   `.cancelled` for a closed downloader; `.workPathUnusable`, `.noSpace` or `.disk` if the work path cannot be used. The errors of the
    ///   file are thrown by the iteration.
    public func stream(
        _ file: some Downloadable, checksum: Checksum? = nil, range: Range<Int64>? = nil, window: Int64 = 64 << 20
    ) async throws(DownloadError) -> DownloadedBytes {
        let builder = try Builder(adding: file, checksum: checksum)
        if let range, range.lowerBound < 0 || range.isEmpty {
            throw DownloadError(.invalidArgument, "A range begins at 0 at the earliest, and has bytes.")
        }
        let end = range.flatMap { $0.upperBound >= ByteRing.maxOffset ? nil : $0.upperBound }
        let start = min(range?.lowerBound ?? 0, ByteRing.maxOffset)
        let source = try await streams.open(
            builder.description, window: window, start: start, end: end, configure, runsPrograms: owned == nil)
        let unread = Locked<(any ByteSource)?>(source)
        return DownloadedBytes(from: start, to: end) { () async throws(DownloadError) in
            if let source = unread.withLock({ $0.take() }) { return source }
            throw DownloadError(.invalidArgument, "A stream can be read once: begin another one.")
        }
    }
}
