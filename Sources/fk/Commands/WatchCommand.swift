import FKCore
import FKMiddleware
import Foundation

/// `fk watch` and `fk barrel watch`: shows the tasks of a work path, whichever process runs the engine.
///
/// | output | `watch` | `barrel watch` |
/// | --- | --- | --- |
/// | a terminal | the full screen, until `q` | a live view, until no member can run any more |
/// | elsewhere | one table | a line for each end |
/// | `--json` | an event a line, until a signal | the same, until no member can run any more |
struct WatchCommand: Command {
    /// nil for the whole work path.
    let barrel: String?
    let context: CommandContext

    private var configure: Configure { global.configure }

    func run() async throws -> Int32 {
        if let barrel {
            // An unknown name is an error now, and no barrel that may come.
            _ = try global.openReader().barrelIDs(barrel)
        }
        if barrel != nil || global.json { return try await follow() }
        let terminal = context.outputTerminal(global.color)
        guard terminal.canMoveCursor, isatty(0) == 1 else { return try table() }
        return try await fullScreen(terminal)
    }

    // MARK: One table

    private func table() throws -> Int32 {
        let reader = global.place.exists ? try global.openQuery().reportingSilence(context) : nil
        if reader?.isEngineRunning != true, !global.quiet {
            context.errors.writeLine("No process runs the downloads. Start them with: \(global.suggested("fk run"))")
            divided?.notes.forEach { context.errors.writeLine($0.visible) }
        }
        if let records = try reader.map({ try RecordList($0) }), !records.isEmpty {
            var table = TaskTable(context)
            records.forEach { table.measure($0) }
            table.write(records)
        } else if !global.quiet {
            context.errors.writeLine("No tasks.")
        }
        return ExitStatus.done
    }

    /// The divided barrels; nil if there are none. The table adds their shards up; the live views show the work path alone.
    private var divided: DividedMembers? {
        global.place.exists ? try? DividedMembers(StoreReader(global.place)) : nil
    }

    // MARK: The full screen

    private func fullScreen(_ terminal: Terminal) async throws -> Int32 {
        let screen = WatchScreen(
            terminal: terminal, output: context.output, input: 0, runCommand: global.suggested("fk run"))
        let session = try WatchSession(configure: configure, interval: 0.25) { screen.post(.event($0)) }
        if let divided { screen.post(.answer(.done(note: divided.watching(global)))) }
        let trap = SignalTrap { screen.post(.end(status: SignalTrap.exitStatus($0), nil)) }
        let following = Task {
            do {
                try await session.run()
            } catch {
                let error = DownloadError(wrapping: error, code: .disk, message: "The work path cannot be read.")
                screen.post(.end(status: ExitStatus.workPath, error))
            }
        }
        let usesUnicode = terminal.usesUnicode
        let workPath = global.place
        // One step after the other: each begins with the limit that the last one has set.
        let steps = Locked<Task<Void, Never>?>(nil)
        let status = try await screen.run { effect in
            switch effect {
            case .request(let request): Task { screen.post(.answer(await session.perform(request))) }
            case .load(let id):
                Task {
                    let record = await session.record(id)
                    let engineRuns = EngineLock.isHeld(workPath)
                    let lines = record.map {
                        WatchDetails.lines($0, engineRuns: engineRuns, usesUnicode: usesUnicode)
                    }
                    screen.post(.details(id, lines ?? ["The task is gone."]))
                }
            case .limit(let name, let isRaised, let rate):
                steps.withLock { last in
                    last = Task { [last] in
                        await last?.value
                        let now = await session.limit(ofBarrel: name)
                        guard now != nil || !isRaised else {
                            return screen.post(.answer(.done(note: "There is no limit to raise.")))
                        }
                        let next = isRaised ? RateSteps.higher(than: now) : RateSteps.lower(than: now, rate: rate)
                        screen.post(.answer(await session.perform(EngineMessage(.limit(rate: next, barrel: name)))))
                    }
                }
            case .start:
                do {
                    let (count, divided) = try Detach.startAll(RunOptions(saved: context), context)
                    let notes = ["\(count.plural("task")) started"] + (divided?.notes ?? [])
                    screen.post(.answer(.done(note: notes.joined(separator: ". "))))
                } catch {
                    screen.post(
                        .answer(.failed(DownloadError(wrapping: error, code: .disk, message: "Nothing was started."))))
                }
            case .quit, .redraw: break
            }
        }
        withExtendedLifetime(trap) {}
        await session.stop()
        _ = await following.value
        return status
    }

    // MARK: Events

    /// Follows until a signal comes, or for a barrel until no member can run any more.
    private func follow() async throws -> Int32 {
        if let divided, barrel.map({ name in divided.barrels.contains { $0.isExactly(name) } }) ?? true {
            context.warn(divided.watching(global))
        }
        let presenter = RunPresenter(context, barrels: barrel.map { [(name: $0, tracker: nil)] } ?? [])
        let following = Following(isFinite: barrel != nil)
        let output = context.output
        let isJSON = global.json
        let start = barrel.map { global.suggested("fk barrel run", [$0]) }
        let state = Locked(following)
        let (ends, continuation) = AsyncStream.makeStream(of: Void.self)
        let session = try WatchSession(configure: configure, interval: 0.5, barrel: barrel) { event in
            let shown = state.withLock { $0.absorb(event) }
            for event in shown { presenter.show(event) }
            if let start, state.withLock({ $0.lacksEngine() }) {
                presenter.showNote("No process runs the downloads. Start them with: \(start)")
            }
            // The reader of the output is gone.
            if state.withLock({ $0.isOver }) || (isJSON && output.isBroken) { continuation.finish() }
        }
        let trap = SignalTrap { number in
            state.withLock { $0.signal = number }
            continuation.finish()
        }
        let stopping = Task {
            for await _ in ends {}
            await session.stop()
        }
        defer { continuation.finish() }
        try await session.run()
        withExtendedLifetime(trap) {}
        _ = await stopping.value
        let (tracker, signal) = state.withLock { ($0.tracker, $0.signal) }
        presenter.close(tracker, isStopped: signal != nil)
        if let signal { return SignalTrap.exitStatus(signal) }
        return tracker.count(.error) > 0 ? ExitStatus.taskFailed : ExitStatus.done
    }
}

/// What `watch --json` and `barrel watch` have heard, as events of a run.
private struct Following: Sendable {
    var tracker: RunTracker
    /// True if it ends when no task can run any more.
    let isFinite: Bool
    var signal: Int32?
    private var isLoaded = false
    /// True after the report that no process runs the engine, until that was said.
    private var isUnsaid = false
    /// For reports of tasks that are forgotten.
    private var urls: [TaskID: String] = [:]
    /// Members that have left the barrel. A trashed one leaves it before its end is reported.
    private var left: Set<TaskID> = []

    init(isFinite: Bool) {
        tracker = RunTracker(targets: isFinite ? [] : nil)
        self.isFinite = isFinite
    }

    var isOver: Bool { isFinite && isLoaded && tracker.isSettled }

    /// - Returns: the events to show.
    mutating func absorb(_ event: WatchSession.Event) -> [RunSession.Event] {
        switch event {
        case .members(let ids):
            tracker.target(ids)
            return []
        case .all(let infos):
            // Tasks that were settled before are counted but not shown.
            let isFirst = !isLoaded
            isLoaded = true
            return news(of: infos, withSettled: !isFirst)
        case .joined(let infos), .changed(let infos): return news(of: infos)
        case .left(let ids):
            left.formUnion(ids.filter(tracker.counts))
            tracker.leave(ids)
            return []
        case .progress(let infos):
            let running = infos.filter { tracker.counts($0.id) }
            return news(of: running) + [.progress(running: running, tracker)]
        case .engineNews(let news, let pid): return [.engineNews(news, pid: pid)]
        case .problem(let text): return [.problem(text)]
        case .owner(let pid):
            isUnsaid = pid == nil
            return []
        case .limit: return []
        }
    }

    /// True if members wait and no process runs the engine; once for each such report.
    mutating func lacksEngine() -> Bool {
        guard isUnsaid, isLoaded, !isOver else { return false }
        isUnsaid = false
        return true
    }

    /// The infos that say something new. A progress may come before the change that begins it.
    private mutating func news(of infos: [DownloadInfo], withSettled: Bool = true) -> [RunSession.Event] {
        infos.compactMap { info in
            var info = info
            if info.state == .unknown {
                info.url = info.url.isEmpty ? urls[info.id] ?? "" : info.url
                urls[info.id] = nil
                if left.remove(info.id) != nil { return .state(info) }
            } else if tracker.counts(info.id) {
                urls[info.id] = info.url
            }
            return tracker.update(info) && (withSettled || !info.state.isSettled) ? .state(info) : nil
        }
    }
}
