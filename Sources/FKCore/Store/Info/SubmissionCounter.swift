import FKMiddleware
import Foundation

/// Issues submission numbers: unique in the work path and ascending, across restarts and crashes.
///
/// The file `number` contains the first number that is not reserved, and its checksum. Numbers are reserved in blocks
/// of 1,024, so there is one write per 1,024 tasks; a crash skips at most that many. Only for the process that owns
/// the engine, from any thread.
package final class SubmissionCounter: Sendable {
    package static let block: UInt64 = 1_024
    private static let size = 16

    private struct State {
        var next: UInt64
        /// The first number that is not reserved.
        var limit: UInt64
    }

    private let path: String
    private let state: Locked<State>

    /// Opens the counter of a work path.
    ///
    /// - Parameter scan: returns the highest number in use (0 for none). It is called only if the file is missing or
    ///   damaged. The default reads all info files of the work path.
    /// - Throws: `.disk` if the file exists and cannot be read, or if the info files cannot be listed.
    package init(_ workPath: WorkPath, scan: ((WorkPath) throws -> UInt64)? = nil) throws {
        path = workPath.numberPath
        let next = try Self.read(path) ?? ((scan ?? Self.highest)(workPath) &+ 1)
        state = Locked(State(next: max(1, next), limit: max(1, next)))
    }

    /// The number that `next` would return.
    package var upcoming: UInt64 { state.withLock(\.next) }

    /// The next number, 1 for the first task of a work path.
    ///
    /// - Throws: `.noSpace` or `.disk` if the next block cannot be reserved. No number is used then.
    package func next() throws -> UInt64 {
        try state.withLock { state in
            if state.next == state.limit {
                try write(state.limit + Self.block)
                state.limit += Self.block
            }
            defer { state.next += 1 }
            return state.next
        }
    }

    /// Releases reserved numbers that were not used. It is optional.
    package func close() {
        state.withLock { state in
            guard state.next < state.limit, (try? write(state.next)) != nil else { return }
            state.limit = state.next
        }
    }

    private func write(_ value: UInt64) throws {
        let descriptor = try FileIO.open(path, O_WRONLY | O_CREAT)
        do {
            _ = fchmod(descriptor, 0o600)
            try withUnsafeTemporaryAllocation(byteCount: Self.size, alignment: 8) { bytes in
                bytes.storeBytes(of: value.littleEndian, as: UInt64.self)
                bytes.storeBytes(of: Self.checksum(UnsafeRawBufferPointer(bytes)), toByteOffset: 8, as: UInt64.self)
                try FileIO.write(UnsafeRawBufferPointer(bytes), to: descriptor, at: 0, path: path)
            }
        } catch {
            FileIO.close(descriptor)
            throw error
        }
        try FileIO.close(descriptor, written: path)
    }

    /// nil for a file that is missing or damaged.
    private static func read(_ path: String) throws -> UInt64? {
        let bytes: [UInt8]
        do {
            bytes = try FileIO.contents(of: path, limit: size)
        } catch let error as DownloadError where error.code == .notFound || error.code == .tooLarge {
            return nil
        }
        guard bytes.count == size else { return nil }
        return bytes.withUnsafeBytes { bytes in
            guard bytes.loadUnaligned(fromByteOffset: 8, as: UInt64.self) == checksum(bytes) else { return nil }
            let value = UInt64(littleEndian: bytes.loadUnaligned(as: UInt64.self))
            return value < .max - block ? value : nil
        }
    }

    private static func checksum(_ bytes: UnsafeRawBufferPointer) -> UInt64 {
        UInt64(CRC32C.checksum(UnsafeRawBufferPointer(rebasing: bytes[..<8]))).littleEndian
    }

    private static func highest(_ workPath: WorkPath) throws -> UInt64 {
        try workPath.allTaskIDs().reduce(0) { highest, id in
            max(highest, InfoFile.number(in: workPath.infoPath(id), places: workPath.places) ?? 0)
        }
    }
}
