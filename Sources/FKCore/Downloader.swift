import FKMiddleware
import Foundation

/// Owns everything: one work path, its engine, and the components that speak to it.
///
/// ```swift
/// let downloader = try Downloader(Configure())
/// downloader.activateQueue()
/// let id = try await Builder("https://example.com/file.zip").prepare(in: downloader)
/// let info = await downloader.messager.finished(id)
/// ```
///
/// Safe to use from any thread. A work path has one engine at a time: a second `Downloader` on it, in this process or
/// another, throws `.workPathBusy`. Call `close()` to give it free; what runs keeps its bytes either way.
public final class Downloader: Sendable {
    /// Verbs on tasks: suspend, resume, cancel, …
    public let control: Control
    /// Questions and callbacks about tasks and barrels.
    public let messager: Messager
    /// The three chains; register and remove at any time.
    public let middlewares: MiddlewareChains

    package let engine: Engine

    /// Makes a configuration effective. Nothing runs before `activateQueue()`.
    ///
    /// - Parameter transport: what moves the bytes; by default what `configure.transportKind` says.
    /// - Throws: `.workPathBusy`, `.workPathUnusable` or `.laterVersion`; `.invalidArgument` for a setting outside its
    ///   range (`Configure.validate()`) or a kind of transport that this build does not have.
    public convenience init(_ configure: Configure = Configure(), transport: (any Transport)? = nil) throws {
        let transport = try transport ?? configure.transportKind.makeTransport()
        let engine = try Engine(configure: configure, scope: .all, transport: transport)
        self.init(engine: engine)
    }

    package init(engine: Engine) {
        self.engine = engine
        control = Control(engine: engine)
        messager = Messager(engine: engine)
        middlewares = engine.chains
    }

    private static let sharedDownloader = Locked<Downloader?>(nil)

    /// The downloader of the default work path, made and activated on first use, and anew on the first use after it was
    /// closed.
    ///
    /// - Throws: what `init` throws, `.workPathBusy` also while the closed one still writes its last records; the next use
    ///   tries again.
    public static var shared: Downloader {
        get throws {
            try sharedDownloader.withLock { downloader in
                if let downloader, !downloader.engine.hasClosed.withLock({ $0 }) { return downloader }
                downloader = nil
                let made = try Downloader()
                made.activateQueue()
                downloader = made
                return made
            }
        }
    }

    /// Starts the 1-second polling timer and the queue. Background tasks of an earlier engine go on, foreground ones
    /// come back suspended. Harmless when called again.
    public func activateQueue() {
        engine.executor.run { [engine] in engine.assumeIsolated { $0.activate() } }
    }

    /// Changes settings while tasks run; a lower `maxAction` lets running tasks finish.
    ///
    /// - Throws: `.configurationLocked` when `workPath` differs from the live one; `.invalidArgument` for a setting outside
    ///   its range, and then nothing changes.
    public func update(_ configure: Configure) async throws { try await engine.update(configure) }

    /// The settings in effect.
    public var configure: Configure { get async { await engine.currentConfigure } }

    /// Calls `handler` each time the queue has drained: nothing that was queued can run any more. Takes the place of
    /// FKDownloader's background completion handler. Runs on the callback queue.
    public func onQueueDrained(_ handler: @escaping @Sendable () -> Void) async {
        _ = await engine.observeDrained(handler)
    }

    /// Returns once nothing that was queued can run any more, when the waiting Swift task is cancelled, and when the
    /// downloader closes.
    public func waitUntilDrained() async { await engine.waitUntilDrained() }

    /// What could not be read, repaired or saved since the last call, for a log: quarantined info files, for example. Each text
    /// once, at most 1,000 of them.
    public func takeProblems() async -> [String] { await engine.takeProblems() }

    /// Stops what runs, keeps its bytes, and gives the work path free. The downloader cannot be used afterwards.
    ///
    /// Returns when every callback and download middleware has been told of everything that happened, also where the
    /// calling Swift task is cancelled. In a request or response middleware, and in tasks it has started, it returns at once:
    /// no new request is taken, and the rest follows when the middlewares at work have returned.
    public func close() async {
        await engine.close()
        let id = ObjectIdentifier(engine)
        guard !MiddlewareCall.isInside(id, .chain), !MiddlewareCall.isInside(id, .callback) else { return }
        await withCheckedContinuation { continuation in engine.callbacks.async { continuation.resume() } }
    }
}
