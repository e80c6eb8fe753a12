import FKCore
import FKMiddleware
import Foundation

/// Runs a `RunSession` for a command: shows it, ends it on a signal, and makes an exit status of it.
struct TransferRun: Sendable {
    let global: GlobalOptions
    let context: CommandContext
    let options: RunOptions
    var goal: RunSession.Goal
    var requests: [EngineRequest]
    var barrels: [(name: String, members: [TaskID])] = []
    /// What to type to go on after an interruption.
    var goOn: String
    /// Tasks that somebody suspends or cancels meanwhile make the run a failed one.
    var needsAll = true

    /// Only once: what it asks for is forgotten as soon as it has been asked for.
    mutating func run() async throws -> Int32 {
        TransportLibrary.prepare()
        let presenter = RunPresenter(global, context, barrels: barrels)
        let requests = requests
        self.requests = []
        let session = RunSession(
            configure: options.configure(global), goal: goal, requests: requests, limits: options.limits,
            interval: presenter.interval, onEvent: presenter.show)
        let signal = Locked<Int32?>(nil)
        let trap = SignalTrap { number in
            signal.withLock { $0 = number }
            Task { await session.stop() }
        }
        let tracker = try await session.run()
        withExtendedLifetime(trap) {}
        presenter.close(tracker)
        if let number = signal.withLock({ $0 }) {
            if !global.json {
                context.errors.writeLine(
                    await session.isEngine
                        ? "Stopped. Everything received is kept; go on with: \(goOn)"
                        : "Stopped following: the other process goes on. Watch it with: \(global.suggested("fk watch"))"
                )
            }
            return SignalTrap.exitStatus(number)
        }
        if tracker.total == 0, case .everything = goal { presenter.note("Nothing is waiting to be fetched.") }
        if presenter.failures > 0 || tracker.count(.error) > 0 { return ExitStatus.taskFailed }
        let isComplete = tracker.count(.complete) == tracker.total
        return isComplete || !needsAll ? ExitStatus.done : ExitStatus.taskFailed
    }
}

extension RunOptions {
    /// The downloader's settings as the command line has them.
    func configure(_ global: GlobalOptions) -> Configure {
        var configure = Configure(workPath: URL(fileURLWithPath: global.workPath, isDirectory: true))
        if let jobs {
            configure.maxAction = jobs
            configure.maxConnectionsPerHost = max(jobs, configure.maxConnectionsPerHost)
        }
        if let connections { configure.connections = connections }
        if let rateLimit { configure.rateLimit = rateLimit > 0 ? rateLimit : nil }
        if let durability { configure.durability = durability }
        if let transport { configure.transportKind = transport }
        return configure
    }

    /// What another process that is the engine has to change.
    var limits: EngineRequest? {
        guard jobs != nil || rateLimit != nil else { return nil }
        return .setLimits(maxAction: jobs, rateLimit: rateLimit)
    }
}
