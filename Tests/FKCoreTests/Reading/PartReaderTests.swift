import FKMiddleware
import Foundation
import TestSupport
import Testing

@testable import FKCore

/// A part file whose bytes a test drops while they are read.
private final class Dropping: ByteSource {
    let isStream = false
    private let path: String
    private let content: [UInt8]
    private let state: Locked<State>

    private struct State {
        var generation = 0
        var lostAt = 0
        var isRefused = false
    }

    init(_ path: String, _ content: [UInt8]) throws {
        (self.path, self.content, state) = (path, content, Locked(State()))
        try Data(content).write(to: URL(fileURLWithPath: path))
    }

    /// Received bytes are dropped: the generation changes, and then the file has other bytes, or none.
    ///
    /// - Parameter isProven: true if nothing else than the same file comes again.
    func drop(isProven: Bool, leaving bytes: [UInt8]) throws {
        state.withLock {
            $0.generation += 1
            if !isProven { $0.lostAt = $0.generation }
        }
        let handle = try FileHandle(forWritingTo: URL(fileURLWithPath: path))
        try handle.truncate(atOffset: 0)
        try handle.write(contentsOf: Data(bytes))
        try handle.close()
    }

    func next(
        at position: Int64, need: Int64, generation: Int?, waitsForEnd: Bool
    ) async throws(DownloadError) -> ReadView {
        let now = state.withLock(\.self)
        if now.generation > 0, now.lostAt == 0, generation == now.generation {
            // The same bytes have come again.
            try? Data(content).write(to: URL(fileURLWithPath: path))
        }
        var view = ReadView(available: Int64(content.count), length: Int64(content.count))
        view.generation = now.generation
        view.lostAt = now.lostAt
        view.isFinal = true
        view.dropReason = now.lostAt > 0 ? DownloadError(.changedOnServer, "The file has changed.") : nil
        if now.generation > 0, generation != now.generation { view.available = position }
        if view.available > position, generation != now.generation || now.generation > 0 {
            view.file = try ReadFile(path: path)
        }
        return view
    }

    func digests(of summary: PieceDigests) -> PieceDigests? { nil }
    func isCurrent(_ generation: Int, at position: Int64) -> Bool { state.withLock { $0.generation == generation } }
    func moved(to position: Int64) {}
    func refuse(piece index: Int) async {}
    func close() {}
}

@Suite("A reader whose bytes are dropped while it reads")
struct PartReaderTests {
    private let folder: TemporaryFolder
    private let content = Bytes.pattern(count: 3 * PartReader.chunk)

    init() throws { folder = try TemporaryFolder() }

    @Test(
        "the same file comes again: the reader waits for its bytes, and gives no other ones", arguments: [0, 1 << 20])
    func proven(zeros: Int) async throws {
        let source = try Dropping(folder.file("part").path, content)
        let reader = PartReader(source, from: 0)
        var bytes = [UInt8](try #require(await reader.next()))
        try source.drop(isProven: true, leaving: [UInt8](repeating: 0, count: zeros))
        while let chunk = try await reader.next() { bytes += chunk }
        #expect(bytes == content)
    }

    @Test("another file may come: an error that says so", arguments: [0, 1 << 20])
    func lost(zeros: Int) async throws {
        let source = try Dropping(folder.file("part").path, content)
        let reader = PartReader(source, from: 0)
        let chunk = try #require(await reader.next())
        #expect(content.starts(with: chunk))
        try source.drop(isProven: false, leaving: [UInt8](repeating: 0, count: zeros))
        let error = await #expect(throws: DownloadError.self) { _ = try await reader.next() }
        #expect(error?.code == .changedOnServer)
    }

    @Test("a file that somebody else has truncated: an error that names it")
    func truncated() async throws {
        let path = folder.file("part").path
        let source = try Dropping(path, content)
        let reader = PartReader(source, from: 0)
        _ = try await reader.next()
        let handle = try FileHandle(forWritingTo: URL(fileURLWithPath: path))
        try handle.truncate(atOffset: 0)
        try handle.close()
        let error = await #expect(throws: DownloadError.self) { _ = try await reader.next() }
        #expect(error?.code == .destination)
    }
}
