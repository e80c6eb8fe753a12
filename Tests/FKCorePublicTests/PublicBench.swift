import FKCore
import FKMiddleware
import Foundation

/// A downloader on a folder of its own, over files in memory.
final class PublicBench: Sendable {
    let folder: URL
    let transport = MemoryTransport()
    let downloader: Downloader

    init(_ change: (inout Configure) -> Void = { _ in }) throws {
        let template = FileManager.default.temporaryDirectory.appendingPathComponent("fk-public-\(UUID().uuidString)")
        try FileManager.default.createDirectory(
            at: template, withIntermediateDirectories: true, attributes: [.posixPermissions: 0o700])
        folder = template
        var configure = Configure(workPath: folder.appendingPathComponent("work"))
        configure.connections = .fixed(1)
        change(&configure)
        downloader = try Downloader(configure, transport: transport)
        downloader.activateQueue()
    }

    deinit { try? FileManager.default.removeItem(at: folder) }

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
