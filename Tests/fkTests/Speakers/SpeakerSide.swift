import TestSupport
import Testing

@testable import FKCore
@testable import FKEngine
@testable import FKModel
@testable import FKTransport
@testable import fk

/// A part file with bytes of a task that does nothing.
struct RestingPart: Equatable {
    var path: String
    var state: DownloadState
    /// Calls of its transport.
    var events: Int
    /// The file: its number, length and time.
    var file: [Int64]
}

/// A work path and its engine.
final class SpeakerSide {
    let number: Int
    let workPath: URL
    let clock = ManualClock()
    private let servers: SpeakerServers
    private let connections: Int
    private let isMoved: Bool
    private(set) var transport: ScriptedTransport
    private(set) var engine: Engine
    private(set) var downloader: Downloader
    /// True once its file was looked at.
    var isDone = false
    var digestOfList = false
    /// The owner's list that gave the digest in force.
    var ownersList: String?
    /// True if the owner has given its task another address.
    var isMovedByOwner = false
    /// Its part file at the last look, while its task rests.
    var restingPart: RestingPart?

    init(_ number: Int, _ folder: TemporaryFolder, _ servers: SpeakerServers, _ connections: Int, isMoved: Bool)
        async throws
    {
        self.number = number
        self.servers = servers
        self.connections = connections
        self.isMoved = isMoved
        workPath = folder.file("work\(number)")
        (transport, engine, downloader) = try Self.make(number, workPath, clock, servers, connections, isMoved)
        await engine.activate()
    }

    private static func make(
        _ number: Int, _ workPath: URL, _ clock: ManualClock, _ servers: SpeakerServers, _ connections: Int,
        _ isMoved: Bool
    ) throws -> (ScriptedTransport, Engine, Downloader) {
        let transport = ScriptedTransport(clock: clock) { request, _ in servers.answer(request, number) }
        var configure = Configure(workPath: workPath)
        configure.retry.jitter = 0
        configure.retry.maxAttempts = 4
        configure.connections = .fixed(connections)
        let chains = MiddlewareChains()
        if isMoved {
            chains.onRequest("mover") { request, _ in
                request.url = URL(string: "http://\(SpeakerServers.Host.moved)/f")
            }
        }
        let engine = try Engine(configure: configure, scope: .all, transport: transport, chains: chains, clock: clock)
        return (transport, engine, Downloader(engine: engine))
    }

    func reopen() async throws {
        await downloader.close()
        (transport, engine, downloader) = try Self.make(number, workPath, clock, servers, connections, isMoved)
        await engine.activate()
    }

    func info(_ id: TaskID) async -> DownloadInfo? { await downloader.messager.info(.id(id)) }
}
