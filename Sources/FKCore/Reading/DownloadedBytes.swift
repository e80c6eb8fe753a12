import FKEngine
import FKMiddleware
import Foundation

/// The bytes of a file in order, as an asynchronous sequence of chunks of 1 byte to 256 KiB, while the file arrives.
///
/// ```swift
/// for try await chunk in task.bytes() { handle.write(chunk) }
/// ```
///
/// Iterating does not start the task. While it waits or is suspended, the iteration waits. It ends when the task is complete and its
/// last byte was read. It never gives bytes of two versions of a file.
///
/// Errors (`DownloadError`): that of a failed task, after the bytes that have arrived; `.changedOnServer` or `.incompleteBody` if the file that was
/// begun cannot be continued; `.checksumMismatch` for the wrong digest of a stream, after its last byte; `.cancelled` if the task or the Swift task
/// is cancelled, and if the downloader closes. Bytes that were given before an error are a true prefix.
public struct DownloadedBytes: AsyncSequence, Sendable {
    private let open: @Sendable () async throws(DownloadError) -> any ByteSource
    private let start: Int64
    private let end: Int64?

    init(
        from start: Int64, to end: Int64? = nil,
        _ open: @escaping @Sendable () async throws(DownloadError) -> any ByteSource
    ) {
        (self.start, self.end, self.open) = (start, end, open)
    }

    /// Begins to read. Each iteration of a task reads by itself, from the same offset; a stream can be iterated once.
    public func makeAsyncIterator() -> AsyncIterator { AsyncIterator(bytes: self) }

    /// Reads one chunk after the other. Its end, also before the last byte, releases what it holds.
    public struct AsyncIterator: AsyncIteratorProtocol {
        fileprivate let bytes: DownloadedBytes
        private var reader: PartReader?
        private var isOver = false

        fileprivate init(bytes: DownloadedBytes) { self.bytes = bytes }

        /// The length of the file in bytes; nil while it is not known.
        package var length: Int64? { reader?.length }

        /// The next chunk; nil at the end.
        ///
        /// - Throws: see `DownloadedBytes`.
        public mutating func next() async throws(DownloadError) -> Data? { try await next(isolation: nil) }

        /// The next chunk; nil at the end.
        ///
        /// - Throws: see `DownloadedBytes`.
        public mutating func next(isolation: isolated (any Actor)?) async throws(DownloadError) -> Data? {
            if isOver { return nil }
            do throws(DownloadError) {
                let reader: PartReader
                if let known = self.reader {
                    reader = known
                } else {
                    reader = PartReader(try await bytes.open(), from: bytes.start, to: bytes.end)
                    self.reader = reader
                }
                if let data = try await reader.next(isolation: isolation) { return data }
            } catch {
                end()
                throw error
            }
            end()
            return nil
        }

        private mutating func end() {
            isOver = true
            reader = nil
        }
    }
}
