import FKCore
import FKMiddleware
import FKTesting
import FKTransport
import Foundation

/// A downloader on a folder of its own, over files in memory.
final class PublicBench: Sendable {
    let folder: URL
    let files = MemoryFiles()
    let transport: ScriptedTransport
    let downloader: Downloader

    init(_ change: (inout Configure) -> Void = { _ in }) throws {
        let template = FileManager.default.temporaryDirectory.appendingPathComponent("fk-public-\(UUID().uuidString)")
        try FileManager.default.createDirectory(
            at: template, withIntermediateDirectories: true, attributes: [.posixPermissions: 0o700])
        folder = template
        var configure = Configure(workPath: folder.appendingPathComponent("work"))
        configure.connections = .fixed(1)
        change(&configure)
        transport = ScriptedTransport { [files] request, _ in files.answer(request) }
        downloader = try Downloader(configure, transport: transport)
        downloader.activateQueue()
    }

    deinit {
        Task { [downloader, folder] in
            await downloader.close()
            try? FileManager.default.removeItem(at: folder)
        }
    }

    static func url(_ path: String) -> String { "http://files.example\(path)" }

    /// A description with a destination of its own.
    func builder(_ path: String) throws -> Builder {
        var builder = try Builder(Self.url(path))
        builder.folder = folder.appendingPathComponent("files")
        return builder
    }

    func bytes(_ name: String) throws -> [UInt8] {
        Array(try Data(contentsOf: folder.appendingPathComponent("files").appendingPathComponent(name)))
    }

    static func pattern(_ count: Int) -> [UInt8] { (0..<count).map { UInt8(truncatingIfNeeded: $0 &* 31 &+ $0 >> 8) } }
}

/// The files of a server.
final class MemoryFiles: Sendable {
    private struct File {
        var bytes: [UInt8]
        var hold = 0
        var gate: TestGate?
    }
    private let lock = NSLock()
    // Guarded by `lock`.
    nonisolated(unsafe) private var files: [String: File] = [:]

    /// - Parameter hold: the body stops after this many bytes until `release`.
    func serve(_ path: String, _ bytes: [UInt8], hold: Int? = nil) {
        lock.withLock { files[path] = File(bytes: bytes, hold: hold ?? 0, gate: hold.map { _ in TestGate() }) }
    }

    /// Lets the rest of the body come.
    func release(_ path: String) { lock.withLock { files[path]?.gate }?.open() }

    func answer(_ request: TransportRequest) -> ScriptedTransport.Answer {
        guard let file = lock.withLock({ files[request.urlRequest.url?.path ?? ""] }) else { return .status(404) }
        let range = request.urlRequest.value(forHTTPHeaderField: "Range")?.drop { !$0.isNumber }.prefix { $0.isNumber }
        let start = range.flatMap { Int($0) } ?? 0
        return .file(file.bytes, to: request, gate: file.gate, pauseAt: max(0, file.hold - start))
    }
}

/// What callbacks have said so far, and a wait for what they say next.
final class Heard<Value: Sendable>: Sendable {
    private let stream: AsyncStream<Value>
    private let continuation: AsyncStream<Value>.Continuation

    init() { (stream, continuation) = AsyncStream.makeStream() }

    func add(_ value: Value) { continuation.yield(value) }

    /// The values up to the first that is meant.
    func until(_ isMeant: @Sendable (Value) -> Bool) async -> [Value] {
        var values: [Value] = []
        for await value in stream {
            values.append(value)
            if isMeant(value) { break }
        }
        return values
    }
}
