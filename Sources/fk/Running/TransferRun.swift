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
    var addition: TaskAddition?
    /// The barrels whose sums are shown as well. A single one has the sums of the run.
    var barrels: [String] = []
    /// The command that continues after an interruption.
    var continueCommand: String
    /// True if tasks that are suspended or cancelled during the run make it fail.
    var needsAll = true
    /// The part of a list that this run takes; nil for all of it. Only then the status says whether another run would help.
    var shard: Shard? = nil
    /// The entries of lists that were left out, for the last line.
    var refused = 0

    /// Runs the session. Call it only once, because it releases the requests after they are performed.
    mutating func run() async throws -> Int32 {
        let log = try options.openLog(context)
        if options.isVerbose { TransportLibrary.trace { [errors = context.errors] in errors.writeLine($0) } }
        TransportLibrary.prepare()
        let presenter = RunPresenter(
            context, barrels: try sums(),
            paths: FinishedPaths(options.print, isNUL: options.endsWithNUL, context))
        let requests = requests
        let note = options.followerNote(goal)
        let isVerbose = options.isVerbose
        let added = addition?.tasks.sample ?? []
        self.requests = []
        let chains = MiddlewareChains()
        chains.registerSources(context.environment)
        let keys = PauseKeys()
        let session = RunSession(
            configure: options.configure(global), goal: goal, requests: requests, addition: addition, own: options.own,
            interval: presenter.interval, waitsForSuspended: options.waitsForSuspended(context), chains: chains
        ) { [context, goal] event in
            // Earlier than the text that names the key.
            keys.record(event)
            presenter.show(event)
            log?.record(event)
            guard case .following(let pid) = event else { return }
            if let note { presenter.showNote(note) }
            let tasks = added.isEmpty ? Self.sample(goal, context) : added
            for text in EngineEnvironment(of: pid, own: context.environment).warnings(about: tasks) {
                presenter.show(.problem(text))
                log?.record(.problem(text))
            }
            if isVerbose {
                presenter.showNote(
                    "-v shows what this process sends, and process \(pid) sends the requests: start that one with -v.")
            }
        }
        keys.onContinue { Task { await session.resumeSuspended() } }
        let signal = Locked<Int32?>(nil)
        let farewell: StaticString? =
            global.json || global.quiet
            ? nil : "Stopped at once. Received bytes are kept; the same command continues with them.\n"
        let trap = SignalTrap(farewell: farewell) { number in
            signal.withLock { $0 = number }
            Task { await session.stop(soon: number == SIGTERM) }
        }
        log?.write(LogLine(.info, "begin", [("version", Version.text), ("pid", "\(getpid())")]))
        let tracker = try await run(session, log)
        withExtendedLifetime(trap) {}
        keys.close()
        presenter.close(tracker, refused: refused, isStopped: signal.withLock(\.self) != nil)
        log?.write(LogLine(ending: tracker, signal: signal.withLock(\.self)))
        warnOfOutdated(presenter.outdated)
        warnOfEdited(presenter.edited)
        if let number = signal.withLock({ $0 }) {
            if !global.json {
                let pid = await session.isEngine ? nil : EngineLock.holder(global.place)?.pid
                let isHandedOver = await session.hasHandedOver
                let text = stopped(tracker, owner: pid, isHandedOver: isHandedOver, run: presenter.run)
                // A command with options is copied as a whole.
                if text.contains(" --") { context.errors.writeLine(text) } else { context.say(text) }
            }
            return SignalTrap.exitStatus(number)
        }
        if tracker.total == 0, case .everything = goal { presenter.showNote("Nothing is waiting to be fetched.") }
        if presenter.failureStatus == ExitStatus.workPath { return ExitStatus.workPath }
        if presenter.failures > 0 || tracker.count(.error) > 0 {
            return shard != nil && presenter.mayPass ? ExitStatus.tryAgain : ExitStatus.taskFailed
        }
        let isComplete = tracker.count(.complete) == tracker.total
        return isComplete || !needsAll ? ExitStatus.done : ExitStatus.taskFailed
    }

    /// Some of the tasks that a run without new ones is about.
    private static func sample(_ goal: RunSession.Goal, _ context: CommandContext) -> [TaskDescription] {
        guard let reader = try? context.global.openReader() else { return [] }
        let ids: [TaskID] =
            switch goal {
            case .tasks(let ids): ids
            case .barrels(let names): names.flatMap { (try? reader.barrelIDs($0).ids) ?? [] }
            case .added: []
            case .everything: (try? reader.allTaskIDs()) ?? []
            }
        return reader.records(ids.prefix(256)).filter { !$0.state.isSettled }.map(\.task)
    }

    private func warnOfEdited(_ ids: [TaskID]) {
        guard let first = ids.first else { return }
        let which = ids.count == 1 ? first.short : addition?.barrel.map { "-b \($0.shellWord)" } ?? "--all"
        context.warn(
            "\(ids.count.plural("finished file")) \(ids.count == 1 ? "was" : "were") changed after fk wrote "
                + "\(ids.count == 1 ? "it, and stays" : "them, and stay"): \(global.suggested("fk verify --repair \(which)")) fetches what was "
                + "there.")
    }

    private func warnOfOutdated(_ count: Int) {
        guard count > 0, let barrel = addition?.barrel else { return }
        let is1 = count == 1
        context.warn(
            "\(count.plural("finished file")) \(is1 ? "has" : "have") another version at the source now, and "
                + "\(is1 ? "stays" : "stay"): \(global.suggested("fk barrel sync", [barrel])) fetches what has changed."
        )
    }

    /// What becomes of the files after a signal.
    ///
    /// - Parameters:
    ///   - owner: the process that runs the downloads, if it is another one.
    ///   - isHandedOver: true if that process has all files of this command.
    ///   - run: the name of the run, for the command; nil without one.
    private func stopped(_ tracker: RunTracker, owner: Int32?, isHandedOver: Bool, run: RunName?) -> String {
        guard let owner else {
            return "Stopped. All received bytes are kept; resume with: \(resumeCommand(tracker, run))"
        }
        guard isHandedOver else {
            return "Stopped before process \(owner) had all files of this command. Give it again: \(continueCommand)"
        }
        if tracker.isSettled { return "Stopped." }
        // An owner that was started for files of its own ends with them.
        return "Stopped following. Process \(owner) continues with these files until it ends; what is left then waits. "
            + "Watch with: \(global.suggested("fk watch")); continue then with: \(resumeCommand(tracker, run))"
    }

    /// The command that continues. `fk run` leaves suspended tasks alone.
    private func resumeCommand(_ tracker: RunTracker, _ run: RunName?) -> String {
        guard tracker.count(.suspend) > 0 else { return continueCommand }
        let which = run.map { "--run \($0.text)" } ?? "--all"
        return "\(global.suggested("fk resume \(which)")), then \(global.suggested("fk run"))"
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
    func configure(_ global: GlobalOptions) -> Configure { orders.settings(over: global.configure) }

    /// Asks for finished files, with the tokens of their sources.
    ///
    /// - Parameter each: receives the answers.
    /// - Throws: the errors of the list of programs, and of the transport kind.
    func refresh(_ ids: [TaskID], _ context: CommandContext, each: (RefreshedFile) -> Void) async throws {
        let chains = MiddlewareChains()
        chains.registerSources(context.environment)
        try await configure(context.global).refresh(ids, orders.own, chains, each: each)
    }

    /// The options that have no effect because another process is the engine; nil if there are none.
    func followerNote(_ goal: RunSession.Goal) -> String? {
        var names = RunOption.ignored(orders, goal)
        if case .everything = goal, orders.own != nil { names.append("the limits") }
        guard !names.isEmpty else { return nil }
        let options = names.joined(separator: ", ")
        return "That process uses its own settings; \(options) of this command count if it takes over. "
            + "'fk limit' changes the rate now."
    }
}
