import FKCore
import FKManifests
import FKMiddleware
import Foundation

/// Runs a `RunSession` for a command: shows it, ends it on a signal, and returns the exit status.
struct TransferRun: Sendable {
    let context: CommandContext
    private var global: GlobalOptions { context.global }
    let options: RunOptions
    var goal: RunSession.Goal
    var requests: [EngineMessage]
    /// The tasks that are added; nil for none.
    var addition: TaskAddition?
    /// The barrels whose sums are shown as well. A single one has the sums of the run.
    var barrels: [String] = []
    /// The command that continues after an interruption.
    var continueCommand: String
    /// True if tasks that are suspended or cancelled during the run make it fail.
    var needsAll = true
    /// The part of a list that this run takes; nil for all of it. Only then the status says whether another run would help.
    var shard: Shard? = nil

    /// Runs the session. Call it only once, because it releases the requests after they are performed.
    mutating func run() async throws -> Int32 {
        let log = try options.openLog(context)
        TransportLibrary.prepare()
        let presenter = RunPresenter(
            context, barrels: try sums(),
            paths: FinishedPaths(options.print, isNUL: options.endsWithNUL, context))
        let requests = requests
        let note = options.followerNote(goal)
        self.requests = []
        let chains = MiddlewareChains()
        for token in HubTokenMiddleware.all(context.environment) { chains.register(request: token, for: token.scope) }
        let keys = PauseKeys()
        let session = RunSession(
            configure: options.configure(global), goal: goal, requests: requests, addition: addition, own: options.own,
            interval: presenter.interval, waitsForSuspended: options.waitsForSuspended(context), chains: chains
        ) { event in
            // Earlier than the text that names the key.
            keys.note(event)
            presenter.show(event)
            log?.note(event)
            if case .following = event, let note { presenter.note(note) }
        }
        keys.onContinue { Task { await session.resumeSuspended() } }
        let signal = Locked<Int32?>(nil)
        let trap = SignalTrap { number in
            signal.withLock { $0 = number }
            Task { await session.stop(soon: number == SIGTERM) }
        }
        log?.write(LogLine(.info, "begin", [("version", Version.text), ("pid", "\(getpid())")]))
        let tracker = try await run(session, log)
        withExtendedLifetime(trap) {}
        keys.close()
        presenter.close(tracker)
        log?.write(LogLine(ending: tracker, signal: signal.withLock(\.self)))
        if let number = signal.withLock({ $0 }) {
            if !global.json {
                context.errors.writeLine(
                    await session.isEngine
                        ? "Stopped. All received bytes are kept; resume with: \(resumeCommand(tracker))"
                        : "Stopped following: the other process continues. Watch it with: \(global.suggested("fk watch"))"
                )
            }
            return SignalTrap.exitStatus(number)
        }
        if tracker.total == 0, case .everything = goal { presenter.note("Nothing is waiting to be fetched.") }
        if presenter.failures > 0 || tracker.count(.error) > 0 {
            return shard != nil && presenter.mayPass ? ExitStatus.tryAgain : ExitStatus.taskFailed
        }
        let isComplete = tracker.count(.complete) == tracker.total
        return isComplete || !needsAll ? ExitStatus.done : ExitStatus.taskFailed
    }

    /// The command that continues. `fk run` leaves suspended tasks alone.
    private func resumeCommand(_ tracker: RunTracker) -> String {
        guard tracker.isSettled, tracker.count(.suspend) > 0 else { return continueCommand }
        return "\(global.suggested("fk resume --all")), then \(global.suggested("fk run"))"
    }

    /// The barrels for the presenter. Only JSON shows the sums of several, so only it needs their members in memory.
    private func sums() throws -> [(name: String, tracker: RunTracker?)] {
        guard global.json else { return [] }
        guard barrels.count > 1 else { return barrels.map { (name: $0, tracker: nil) } }
        let reader = try global.openReader()
        return try barrels.map { name in
            var tracker = RunTracker()
            tracker.target(try reader.barrelIDs(name).ids)
            return (name: name, tracker: tracker)
        }
    }

    private func run(_ session: RunSession, _ log: LogFile?) async throws -> RunTracker {
        do {
            return try await session.run()
        } catch let error as DownloadError {
            log?.write(LogLine(.error, "end", [("code", error.code.rawValue), ("reason", error.shortText)]))
            throw error
        }
    }
}

extension RunOptions {
    /// The downloader's settings for these options.
    func configure(_ global: GlobalOptions) -> Configure {
        var configure = global.configure
        if let jobs { configure.maxConnectionsPerHost = max(jobs, configure.maxConnectionsPerHost) }
        if let minFree { configure.minFree = minFree }
        if let partsFolder { configure.partsFolder = URL(fileURLWithPath: partsFolder, isDirectory: true) }
        if let durability { configure.durability = durability }
        if let transport { configure.transportKind = transport }
        return configure
    }

    /// The limits of this command's own tasks, whichever process is the engine.
    var own: OwnLimits? {
        let rate = rateLimit.flatMap { $0 > 0 ? $0 : nil }
        let limits = OwnLimits(
            name: group, maxAction: jobs, rateLimit: rate, connections: connections, connectionsPerHost: perHost,
            requestRate: requestRate, contact: contact, shards: shards)
        return limits == OwnLimits(name: group) ? nil : limits
    }

    /// The options that have no effect because another process is the engine; nil if there are none.
    func followerNote(_ goal: RunSession.Goal) -> String? {
        var names: [String] = []
        if durability != nil { names.append("--durability") }
        if transport != nil { names.append("--transport") }
        if partsFolder != nil { names.append("--parts-folder") }
        if case .everything = goal, minFree != nil { names.append("--min-free") }
        if case .everything = goal, own != nil { names.append("the limits") }
        guard !names.isEmpty else { return nil }
        let options = names.joined(separator: ", ")
        return "That process uses its own settings; \(options) of this command count if it takes over. "
            + "'fk limit' changes the rate now."
    }
}
