import FKRPC
import TestSupport
import Testing

/// A service over a downloader and a server of its own.
final class RPCFixture: Sendable {
    let folder: TemporaryFolder
    let server: FaultServer
    let downloader: Downloader
    let service: RPCService
    let log = Locked<[String]>([])
    let delays = Locked(0)

    var downloads: String { folder.file("downloads").path }

    init(
        secret: String? = nil, folder: TemporaryFolder? = nil, isActive: Bool = true,
        change: (inout RPCSettings) -> Void = { _ in }
    ) async throws {
        self.folder = try folder ?? TemporaryFolder()
        server = try FaultServer()
        let downloads = self.folder.file("downloads")
        try FileManager.default.createDirectory(at: downloads, withIntermediateDirectories: true)
        var configure = Configure(workPath: self.folder.file("work"))
        configure.retry.maxAttempts = 1
        downloader = try Downloader(configure, role: .either)
        var settings = RPCSettings(folders: [downloads.path], secret: secret)
        settings.log = { [log] line in log.withLock { $0.append(line) } }
        settings.refusalDelay = { [delays] in delays.withLock { $0 += 1 } }
        change(&settings)
        service = RPCService(downloader, settings, workPath: configure.workPath.path)
        if isActive { downloader.activateQueue() }
        await service.start()
    }

    deinit {
        Task { [folder, service, downloader] in
            await service.stop()
            await downloader.close()
            withExtendedLifetime(folder) {}
        }
    }

    /// Returns once the work path is free for another fixture.
    func close() async {
        await service.stop()
        await downloader.close()
    }

    /// The answer to a body.
    func send(_ body: String, from peer: RPCPeer? = nil) async throws -> (status: Int, json: JSON) {
        let answer = await service.handle(Array(body.utf8), from: RPCCaller(peer: peer))
        return (answer.status, try #require(JSON(parsing: answer.body)))
    }

    /// The result or the error of a call.
    func call(_ method: String, _ params: JSON..., from peer: RPCPeer? = nil) async throws -> JSON {
        let body = JSON.members([
            "jsonrpc": "2.0", "id": "q", "method": .string(method), "params": .array(params),
        ])
        let json = try await send(String(decoding: body.bytes, as: UTF8.self), from: peer).json
        return try #require(json["result"] ?? json["error"])
    }

    /// Adds a task that waits.
    func addPaused(_ name: String, _ options: JSON.Member...) async throws -> String {
        let members = [JSON.Member("pause", "true")] + options
        let result = try await call("aria2.addUri", [.string(server.url("/\(name)"))], .object(members))
        return try #require(result.string, "\(result)")
    }

    /// The value of a key of a task.
    func status(_ gid: String, _ key: String = "status") async throws -> String? {
        try await call("aria2.tellStatus", .string(gid))[key]?.string
    }

    /// Waits until a task has this status.
    func wait(_ gid: String, for status: String) async throws {
        let found = try await eventually { try await self.status(gid) == status ? true : nil }
        let now = try await self.status(gid) ?? "gone"
        #expect(found == true, "\(gid) is not \(status) but \(now)")
    }

    /// The gids of a list.
    func gids(_ method: String, _ params: JSON...) async throws -> [String] {
        var all = params
        all.append(.array(["gid"]))
        let body = JSON.members(["id": 1, "method": .string(method), "params": .array(all)])
        let json = try await send(String(decoding: body.bytes, as: UTF8.self)).json
        return (json["result"]?.array ?? []).compactMap { $0["gid"]?.string }
    }
}
