import FKEngine
import FKMiddleware
import Foundation

extension DownloadTask {
    /// The bytes of the file from an offset on, in order, while they arrive and afterwards (`DownloadedBytes`).
    ///
    /// The position of a reader is a wish: its bytes are fetched first, if the server serves ranges. Of several readers, the one that is
    /// nearest to its next missing byte comes first. If another process runs the task, its bytes are read as they arrive there, and
    /// the position is no wish. If a list has given digests of pieces, only pieces that have theirs are read. A digest of the whole
    /// file is compared before the last chunk is followed by the end: a wrong one throws.
    ///
    /// - Parameter offset: the first byte; the default is 0. Behind the end of the file, the iteration throws `.badRange`; for a negative
    ///   one, `.invalidArgument`.
    public func bytes(from offset: Int64 = 0) -> DownloadedBytes { bytes(from: offset, to: nil) }

    /// - Parameter end: the offset after the last byte; nil for the end of the file.
    package func bytes(from offset: Int64, to end: Int64?) -> DownloadedBytes {
        let start = min(Swift.max(0, offset), ByteRing.maxOffset)
        return DownloadedBytes(from: start, to: end) { [self] () async throws(DownloadError) in
            guard offset >= 0 else { throw Self.negative }
            return try await source(at: start)
        }
    }

    private static let negative = DownloadError(.invalidArgument, "An offset and a number of bytes are at least 0.")

    /// Reads the bytes of a task in another work path, such as that of a shard, as its process records them.
    ///
    /// - Parameter end: same as for `bytes(from:to:)`.
    package static func bytes(
        of id: TaskID, in workPath: WorkPath, from offset: Int64, to end: Int64?
    ) -> DownloadedBytes {
        DownloadedBytes(from: min(offset, ByteRing.maxOffset), to: end) { () async throws(DownloadError) in
            StoreSource(workPath, id)
        }
    }

    /// Reads bytes from the middle of the file, and waits until they are there. They are fetched first, as for `bytes(from:)`.
    ///
    /// - Parameters:
    ///   - offset: the first byte.
    ///   - count: the number of bytes, all of which are kept in memory.
    /// - Returns: the bytes; fewer only at the end of the file, and none behind it, as `pread` does.
    /// - Throws: see `DownloadedBytes`; `.invalidArgument` for a negative number.
    public func read(at offset: Int64, count: Int) async throws(DownloadError) -> Data {
        guard offset >= 0, count >= 0 else { throw Self.negative }
        let offset = min(offset, ByteRing.maxOffset)
        return try await PartReader(source(at: offset), from: offset).read(exactly: count)
    }

    private func source(at offset: Int64) async throws(DownloadError) -> any ByteSource {
        guard await info != nil else { throw DownloadError(.notFound, "There is no task \(id.short).") }
        guard let engine = downloader.owned else { return StoreSource(downloader.engine.workPath, id) }
        return EngineSource(engine, id, number: await engine.openReader(id, at: offset))
    }
}
