import FKCore
import FKEngine
import FKMiddleware
import Foundation

/// A barrel that is published to a folder, without a network, and with kills at each step.
///
/// ```swift
/// let harness = try await SetHarness(["weights": [1, 2, 3], "tokens": [4]])
/// try await harness.publish()
/// try await harness.serve(["weights": [5, 6], "tokens": [4]])
/// for step in 0... {
///     if try await harness.publish(killedAt: step) { break }
///     #expect(MyModel(harness.folder) != nil)  // the old set, or the new one
///     try await harness.restart()
/// }
/// ```
///
/// Each harness has a work path and a folder of its own, which are removed with it.
public actor SetHarness {
    /// The folder that the set is published to. It is missing before the first `publish()`.
    public nonisolated let folder: URL
    /// The downloader. After `restart()` it is another one.
    public private(set) var downloader: Downloader
    /// The barrel of the files.
    public private(set) var barrel: Barrel
    private let base: URL
    private let configure: Configure
    private let clock = ManualClock()
    private let files: Locked<[String: [UInt8]]>

    /// Creates a barrel with these files.
    ///
    /// - Parameters:
    ///   - files: their contents by their names.
    ///   - configure: changes the settings.
    /// - Throws: the errors of `Downloader.init` and `serve(_:)`, and of a temporary folder that cannot be created.
    public init(_ files: [String: [UInt8]], _ configure: (inout Configure) -> Void = { _ in }) async throws {
        base = FileManager.default.temporaryDirectory.appendingPathComponent("fk-set-\(UUID().uuidString)")
        try FileManager.default.createDirectory(at: base, withIntermediateDirectories: true)
        folder = base.appendingPathComponent("set")
        var settings = Configure(workPath: base.appendingPathComponent("work"))
        settings.retry.jitter = 0
        configure(&settings)
        self.configure = settings
        let served = Locked<[String: [UInt8]]>([:])
        self.files = served
        downloader = try Self.downloader(settings, served, clock)
        barrel = try await downloader.barrel("set")
        try await serve(files)
    }

    deinit { try? FileManager.default.removeItem(at: base) }

    private static func downloader(
        _ configure: Configure, _ files: Locked<[String: [UInt8]]>, _ clock: ManualClock
    ) throws -> Downloader {
        let transport = ScriptedTransport(clock: clock) { request, _ in
            let name = request.urlRequest.url?.lastPathComponent ?? ""
            guard let bytes = files.withLock({ $0[name] }) else { return .status(404) }
            return .file(bytes, etag: "\"\(checksum(of: bytes)?.hex ?? "")\"", to: request)
        }
        let downloader = try Downloader(configure, scripted: transport, clock: clock)
        downloader.activateQueue()
        return downloader
    }

    private static func checksum(of bytes: [UInt8]) -> Checksum? {
        let digester = Digester(.sha256)
        bytes.withUnsafeBytes { digester.update($0) }
        return try? Checksum(.sha256, hex: digester.hex())
    }

    /// Makes these files the whole set: the barrel follows, and downloads what is new. The published folder stays.
    ///
    /// - Throws: the errors of `Barrel.set(_:leaving:)`, and of the first file that cannot be downloaded.
    public func serve(_ files: [String: [UInt8]]) async throws {
        self.files.withLock { $0 = files }
        let entries = try files.sorted { $0.key < $1.key }.map { name, bytes in
            var entry = try Builder("https://example.com/set/\(name)")
            entry.folder = base.appendingPathComponent("files")
            entry.options.checksum = Self.checksum(of: bytes)
            return entry
        }
        let changes = try await barrel.set(entries, leaving: .trash)
        if let failure = changes.failures.first { throw failure.error }
        _ = try await barrel.complete().get()
    }

    /// Publishes the set.
    ///
    /// - Throws: the errors of `Barrel.publish(to:)`.
    @discardableResult
    public func publish() async throws -> PublishedFiles { try await barrel.publish(to: folder) }

    /// Publishes the set, and ends before a step, as if the process was killed there. Nothing is cleaned up before `restart()` or the
    /// next `publish()`.
    ///
    /// - Parameter step: the number of the step that changes something on the disk, from 0.
    /// - Returns: true if there is no such step: the set is published.
    /// - Throws: the errors of `Barrel.publish(to:)`.
    public func publish(killedAt step: Int) async throws -> Bool {
        _ = try await barrel.complete().get()
        let ids = await barrel.members.map(\.id)
        var count = 0
        let publisher = SetPublisher("set", in: WorkPath(configure), durability: configure.durability) {
            if count == step { throw SetPublisher.Killed() }
            count += 1
        }
        do {
            _ = try publisher.publish(to: folder.path, known: SetMembers.Known(ids, [:]))
            return true
        } catch is SetPublisher.Killed {
            return false
        }
    }

    /// Closes the downloader and creates another one, as the next start of the program does. It removes what a kill has left.
    ///
    /// - Throws: the errors of `Downloader.init`.
    public func restart() async throws {
        await downloader.close()
        downloader = try Self.downloader(configure, files, clock)
        barrel = try await downloader.barrel("set")
    }

    /// The contents of the published files by their names; nil without a whole set. It looks into the folder only.
    public nonisolated var published: [String: [UInt8]]? {
        guard let names = try? FileManager.default.subpathsOfDirectory(atPath: folder.path),
            names.contains(SetMark.fileName)
        else { return nil }
        var files: [String: [UInt8]] = [:]
        for name in names where name != SetMark.fileName {
            let file = folder.appendingPathComponent(name)
            if let bytes = try? Data(contentsOf: file) { files[name] = [UInt8](bytes) }
        }
        return files
    }

    /// The names beside the folder: empty after a publication that nothing has interrupted.
    public nonisolated var leftovers: [String] {
        ((try? FileManager.default.contentsOfDirectory(atPath: base.path)) ?? []).filter { $0.hasPrefix(".") }.sorted()
    }

    /// Closes the downloader.
    public func close() async { await downloader.close() }
}
