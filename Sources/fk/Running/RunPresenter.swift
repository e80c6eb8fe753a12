import FKCore
import FKMiddleware
import Foundation

/// Shows a run as a live view, as lines, or as JSON with one event per line.
///
/// Safe to use from any thread. `RunSession` passes it one event after the other.
final class RunPresenter: Sendable {
    private struct State {
        /// The bytes of each running task at its last progress event, or at its start.
        var previous: [TaskID: Int64] = [:]
        /// The bytes in the last progress event of each task.
        var reported: [TaskID: Int64] = [:]
        var barrelPrevious = ExactText.Map<Int64>()
        /// Without a tracker, a barrel has the sums of the run.
        var barrels: [(name: String, tracker: RunTracker?)] = []
        var started: [TaskID: (time: ContinuousClock.Instant, received: Int64, sent: Int64)] = [:]
        var meters = RunMeters()
        /// Why a sample of the waiting tasks waits.
        var waits: [Waiting] = []
        /// The hosts whose pause was told.
        var saidPauses: Set<String> = []
        /// The added tasks that were complete before this run.
        var unchanged: Set<TaskID> = []
        /// The files that were complete before this run, and whether each has a line.
        var already = (count: 0, isListed: true)
        var outdated = 0
        var edited: [TaskID] = []
        /// True if this process has run the tasks from the start, and so receives each attempt.
        var isEngine = false
        var failures = 0
        /// The tasks that could not be created.
        var notAdded = 0
        /// True if one of them failed because of the work path.
        var lacksWorkPath = false
        var failed = RunFailures()
        /// A barrel of this run and the number of its members that were suspended before, which are left out.
        var leftOut: (barrel: String, count: Int)?
        var suspended: Set<TaskID> = []
        var run: RunName?
        var names = SeenNames()
        /// When the last line about the run was written.
        var lastStatus = ContinuousClock.now
    }

    private let context: CommandContext
    private var global: GlobalOptions { context.global }
    private let view: ProgressView
    private let json: JSONLines?
    private let paths: FinishedPaths?
    private let statusInterval: Double
    /// Not the wall clock, which may be set during the run.
    private let begun = ContinuousClock.now
    private let state: Locked<State>

    /// The most tasks waiting for their next attempt that have a row each. More are counted in one line.
    private static let waitingRows = 4
    /// The most added files with a line that were complete before this run. More are counted, and those of a barrel.
    private static let unchangedLines = 5

    /// Creates a presenter. It writes nothing yet.
    ///
    /// - Parameters:
    ///   - barrels: the barrels whose sums are shown in JSON as well, with a tracker of their members; without one, a barrel
    ///     has the sums of the run.
    ///   - paths: where paths of finished files go; nil for nowhere.
    init(
        _ context: CommandContext, barrels: [(name: String, tracker: RunTracker?)] = [],
        paths: FinishedPaths? = nil
    ) {
        self.context = context
        let global = context.global
        self.paths = paths
        json = global.json ? JSONLines(output: context.output) : nil
        view = ProgressView(
            output: context.errors, terminal: context.errorTerminal(global.color),
            mode: global.json ? .quiet : ProgressView.mode(isQuiet: global.quiet, showsProgress: global.progress),
            usesGuard: true)
        statusInterval = StatusLine.interval(context.environment)
        state = Locked(State(barrels: json == nil ? [] : barrels))
    }

    /// True if lines about tasks are written.
    private var showsNames: Bool { view.mode != .quiet }

    /// The seconds between two reports of the session: short for a live view, one second for a script.
    var interval: Double { json == nil && view.mode == .live ? 0.2 : 1 }

    func show(_ event: RunSession.Event) {
        switch event {
        case .engine(let tookOver, let open):
            state.withLock { state in
                state.isEngine = !tookOver
                state.meters.isStill = false
            }
            if tookOver, open > 0 {
                showNote(
                    "The process that ran the downloads has ended: this one continues with its own "
                        + "\(open.plural("file")).")
            }
        case .following(let pid):
            showNote("Process \(pid) runs the downloads of this work path: following it.")
        case .engineNews(let news, let pid):
            state.withLock { state in
                state.meters = RunMeters()
                state.meters.isStill = news == .silent
            }
            view.permanent("fk: " + EngineText.text(news, pid: pid))
        case .replies(let replies): replies.forEach(show)
        case .state(let info): changed(info)
        case .progress(let running, let tracker): progress(running, tracker)
        case .members(let name, let tracker):
            state.withLock { state in
                for index in state.barrels.indices where state.barrels[index].name.isExactly(name) {
                    state.barrels[index].tracker = tracker
                }
            }
        case .leftOut(let name, let count): state.withLock { $0.leftOut = (name, count) }
        case .paused(let count): paused(count)
        case .waiting(let waits):
            state.withLock { $0.waits = waits }
            sayPauses(waits)
        case .trimmed(let files):
            // Also with --quiet: files are gone.
            if let json {
                json.write(.trim(files))
            } else {
                view.permanent("fk: disk budget: \(files.summary.visible)")
            }
        case .problem(let text):
            view.permanent("fk: warning: \(text.visible)")
        }
    }

    private func paused(_ count: Int) {
        let left = count == 1 ? "a suspended file is" : "\(count) suspended files are"
        let keys = TerminalGuard.hasKeys ? "p or " : ""
        // The command touches the files of this run alone.
        let run = name([], suspended: Array(state.withLock(\.suspended)))
        let which = run.map { "--run \($0.text)" } ?? "--all"
        showNote("Only \(left) left: \(keys)'\(global.suggested("fk resume \(which)"))' continues, Ctrl-C ends.")
    }

    /// Without a live view, says once which hosts have asked for a pause: another command may have been told, long ago.
    private func sayPauses(_ waits: [Waiting]) {
        guard view.mode == .lines else { return }
        let now = Date()
        for wait in waits {
            guard wait.reason == .host, wait.policy == nil, let host = wait.host, let until = wait.until,
                until.timeIntervalSince(now) > 3, state.withLock({ $0.saidPauses.insert(host).inserted })
            else { continue }
            showNote("Waiting: \(WaitText.text(wait, now: now)).")
        }
    }

    /// Keeps tasks under the name of this run, which stays the same.
    private func name(_ failed: [TaskID], suspended: [TaskID]) -> RunName? {
        let run = RunBook(WorkPath(global.workPath)).keep(failed, suspended: suspended, as: state.withLock(\.run))
        state.withLock { $0.run = run }
        return run
    }

    /// Writes a line that is not part of the JSON output.
    func showNote(_ text: String) {
        if json == nil, !global.quiet { view.permanent(text.visible) }
    }

    /// The number of requests that failed, and of tasks that could not be created.
    var failures: Int { state.withLock { $0.failures } }

    /// The exit status of these failures.
    var failureStatus: Int32 {
        state.withLock {
            $0.failures == 0 ? ExitStatus.done : $0.lacksWorkPath ? ExitStatus.workPath : ExitStatus.taskFailed
        }
    }

    /// The name under which the failed and suspended tasks were kept at the end; nil without any.
    var run: RunName? { state.withLock { $0.run } }

    /// The number of finished files that were added again, and of which the listing of their source has another version.
    var outdated: Int { state.withLock { $0.outdated } }

    /// The finished files that were added again, and that somebody has changed.
    var edited: [TaskID] { state.withLock { $0.edited } }

    /// True if a failed task could succeed in a later run.
    var mayPass: Bool { state.withLock { $0.failed.mayPass } }

    // MARK: Tasks

    private func show(_ reply: EngineReply) {
        switch reply {
        case .failed(let error): failed(error.url ?? "request", error)
        case .added(let list):
            for added in list {
                if let error = added.error { failed(error.url ?? added.id.short, error, notAdded: added.id) }
                if added.isOutdated == true { state.withLock { $0.outdated += 1 } }
                if added.isEdited == true { state.withLock { $0.edited.append(added.id) } }
                if added.state == .complete, view.mode != .quiet {
                    state.withLock { _ = $0.unchanged.insert(added.id) }
                }
            }
        case .verbs, .done, .limits, .count: break
        }
    }

    /// - Parameter id: the task that could not be created; nil, the default, for a request.
    private func failed(_ name: String, _ error: DownloadError, notAdded id: TaskID? = nil) {
        state.withLock { state in
            state.failures += 1
            if id != nil { state.notAdded += 1 }
            if ExitStatus.of(error) == ExitStatus.workPath { state.lacksWorkPath = true }
            state.failed.add(uncreated: name, error)
        }
        if let json, let id {
            var info = DownloadInfo(id: id, url: error.url ?? "", state: .error)
            info.error = error
            json.write(.state(info))
        }
        view.finished(FinishedLine(name: name, outcome: .failed(error.shortText), bytes: 0))
    }

    private func changed(_ info: DownloadInfo) {
        if let json {
            if info.state == .complete { state.withLock { writeProgress(json, of: info, &$0) } }
            json.write(.state(info, waiting: info.retryWait))
        }
        let begin = state.withLock { state in
            for index in state.barrels.indices { _ = state.barrels[index].tracker?.update(info) }
            if info.state == .action {
                if showsNames { _ = state.names.add(info) }
                // All attempts and the time between them count together.
                if state.started[info.id] == nil { state.started[info.id] = (.now, info.count.received, info.sent) }
                // Bytes from before this run are not counted as received in it.
                if json != nil, state.previous[info.id] == nil { state.previous[info.id] = info.count.received }
            }
            if info.state.isSettled {
                if !state.previous.isEmpty { state.previous[info.id] = nil }
                if !state.reported.isEmpty { state.reported[info.id] = nil }
            }
            if info.state == .suspend { state.suspended.insert(info.id) } else { state.suspended.remove(info.id) }
            if info.state == .error {
                state.failed.add(info)
            } else {
                state.failed.remove(info.id)
            }
            return info.state.isSettled && !state.started.isEmpty ? state.started.removeValue(forKey: info.id) : nil
        }
        if info.state == .complete, view.mode == .quiet { return write(pathOf: info) }
        let outcome: FinishedLine.Outcome
        switch info.state {
        case .complete:
            let (isUnchanged, isListed) = state.withLock { state in
                let wasAdded = state.unchanged.remove(info.id) != nil
                guard begin == nil, wasAdded || state.isEngine else { return (false, true) }
                state.already.count += 1
                let isListed = wasAdded && state.already.count <= Self.unchangedLines
                if !isListed { state.already.isListed = false }
                return (true, isListed)
            }
            guard isListed else { return write(pathOf: info) }
            outcome = isUnchanged ? .unchanged : info.isForeign ? .kept : .complete
        case .error: outcome = .failed(info.error?.shortText(of: info.url) ?? "failed")
        case .suspend: outcome = .suspended
        case .cancel: outcome = .cancelled
        case .unknown: outcome = .forgotten
        case .idle:
            writeWaiting(info)
            return
        default: return
        }
        defer { if info.state == .complete { write(pathOf: info) } }
        let label = showsNames || info.state == .error ? state.withLock { $0.names.add(info) } : nil
        var line = FinishedLine(
            name: info.shownName, label: label, outcome: outcome, bytes: info.count.received,
            fetched: begin.map { max(0, info.sent - $0.sent) },
            seconds: begin.map { (ContinuousClock.now - $0.time) / .seconds(1) })
        // A follower hears of a beginning up to a second late, so that the rate of a small file would be too high.
        if let seconds = line.seconds, seconds < 1, !state.withLock(\.isEngine) { line.seconds = nil }
        line.note = takenName(of: info).map { "\($0.visible) exists" }
        view.finished(line)
    }

    /// The name from the URL, if fk has numbered it because another file has that name.
    private func takenName(of info: DownloadInfo) -> String? {
        guard let name = info.numberedName, let record = try? StoreReader(global.place).record(info.id) else {
            return nil
        }
        // The list or the command has chosen the name with the number.
        return record.task.fileName?.isExactly(info.fileName ?? "") == true ? nil : name
    }

    /// Without a live view, writes that a task waits for its next attempt, because the wait may be long.
    private func writeWaiting(_ info: DownloadInfo) {
        guard view.mode == .lines, let until = info.waitingUntil, let error = info.error else { return }
        let seconds = Formatting.duration(max(0, until.timeIntervalSinceNow))
        view.permanent("\(info.shownName): \(error.shortText.asSentence) Next attempt in \(seconds).".visible)
    }

    private func write(pathOf info: DownloadInfo) {
        guard let paths, let path = info.path else { return }
        if paths.isTerminal { view.aside { paths.write(path) } } else { paths.write(path) }
    }

    private func progress(_ running: [DownloadInfo], _ tracker: RunTracker) {
        let time = Int64(DispatchTime.now().uptimeNanoseconds)
        let now = Date()
        let (lines, total, isStatusDue) = state.withLock { state in
            state.meters.look(
                running, fetched: tracker.fetched, time: time)
            for index in state.barrels.indices {
                for info in running { _ = state.barrels[index].tracker?.update(info) }
            }
            if let json { writeProgress(json, running, tracker, &state) }
            let (lines, total) = Self.rows(running, tracker, state, time: time, now: now)
            let isDue = (ContinuousClock.now - state.lastStatus) / .seconds(1) >= statusInterval
            if isDue { state.lastStatus = .now }
            return (lines, total, isDue)
        }
        guard json == nil else { return }
        view.update(lines, total)
        guard view.mode == .lines, isStatusDue else { return }
        let usesUnicode = context.errorTerminal(global.color).usesUnicode
        if let text = StatusLine.text(lines, total, usesUnicode: usesUnicode) { view.permanent(text) }
    }

    /// The rows of running tasks and of a few that wait for their next attempt. The others that wait are counted.
    private static func rows(
        _ infos: [DownloadInfo], _ tracker: RunTracker, _ state: State, time: Int64, now: Date
    ) -> ([TaskLine], TotalLine) {
        let running = infos.filter { $0.state == .action }
        let retrying = infos.filter { $0.state != .action && $0.wait != nil }
        let shown = running + (retrying.count <= waitingRows ? retrying : [])
        let lines = zip(shown, DistinctNames.labels(shown)).map { info, label in
            TaskLine(
                info, label: label, resumed: state.started[info.id]?.received ?? 0, meters: state.meters, time: time,
                now: now)
        }
        let waiting = tracker.count(.idle) - (shown.count - running.count)
        return (
            lines,
            TotalLine(
                tracker, rate: state.meters.rate, isStalling: state.meters.isStalling(at: time),
                waiting: WaitText.line(count: max(0, waiting), state.waits, now: now))
        )
    }

    private func writeProgress(
        _ json: JSONLines, _ running: [DownloadInfo], _ run: RunTracker, _ state: inout State
    ) {
        for info in running { writeProgress(json, of: info, &state) }
        for (name, own) in state.barrels {
            let tracker = own ?? run
            let previous = state.barrelPrevious[name] ?? tracker.atStart
            state.barrelPrevious[name] = tracker.received
            json.write(
                .barrel(
                    name: name,
                    bytes: ByteCount(
                        received: tracker.received, previousReceived: previous,
                        expected: tracker.expected > 0 || tracker.isExpectedKnown ? tracker.expected : nil),
                    isExpectedKnown: tracker.isExpectedKnown, complete: tracker.count(.complete),
                    error: tracker.count(.error), total: tracker.total))
        }
    }

    private func writeProgress(_ json: JSONLines, of info: DownloadInfo, _ state: inout State) {
        guard state.reported.updateValue(info.count.received, forKey: info.id) != info.count.received else { return }
        var count = info.count
        let previous = state.previous.updateValue(count.received, forKey: info.id) ?? 0
        count.previousReceived = info.isForeign ? count.received : previous
        json.write(.progress(id: info.id.hex, url: info.url, bytes: count, bytesPerSecond: info.bytesPerSecond))
    }

    // MARK: The end

    /// Ends the live view and writes the summary.
    ///
    /// - Parameters:
    ///   - refused: the entries of lists that were left out.
    ///   - isStopped: true after a signal, whose text has the command that continues suspended tasks.
    func close(_ tracker: RunTracker, refused: Int = 0, isStopped: Bool) {
        let seconds = (ContinuousClock.now - begun) / .seconds(1)
        let failed = state.withLock { $0.failed }
        let run = name(failed.ids, suspended: tracker.suspendedIDs)
        state.withLock { state in if let json { writeProgress(json, [], tracker, &state) } }
        let (notAdded, leftOut) = state.withLock { ($0.notAdded, $0.leftOut) }
        json?.write(
            .summary(
                complete: tracker.count(.complete), error: tracker.count(.error) + notAdded,
                suspend: tracker.count(.suspend),
                bytes: tracker.fetched, seconds: (seconds * 1000).rounded() / 1000))
        view.close(keepsTotal: false)
        guard json == nil, !global.quiet else { return }
        if let leftOut, leftOut.count > 0 {
            let verb = leftOut.count == 1 ? "is" : "are"
            context.say(
                "\(leftOut.count.plural("suspended file")) of \(leftOut.barrel) \(verb) left out: "
                    + global.suggested("fk resume -b \(leftOut.barrel.shellWord)"))
        }
        guard tracker.total + notAdded > 0 else { return }
        var parts = ["\(tracker.count(.complete)) of \(tracker.total) complete"]
        let already = state.withLock { $0.already }
        if !already.isListed { parts[0] += " (\(already.count) already)" }
        if tracker.count(.error) > 0 { parts.append("\(tracker.count(.error)) failed") }
        if tracker.count(.suspend) > 0 { parts.append("\(tracker.count(.suspend)) suspended") }
        if tracker.count(.cancel) > 0 { parts.append("\(tracker.count(.cancel)) cancelled") }
        if tracker.count(.unknown) > 0 { parts.append("\(tracker.count(.unknown)) forgotten") }
        if notAdded > 0 { parts.append("\(notAdded) not added") }
        if refused > 0 { parts.append("\(refused) left out (named above)") }
        if tracker.fetched > 0 {
            parts.append("\(Formatting.bytes(tracker.fetched)) in \(Formatting.duration(seconds, precise: true))")
            if FinishedLine.hasRate(tracker.fetched, of: tracker.received) {
                parts.append(Formatting.rate(Double(tracker.fetched) / max(seconds, 0.001)))
            }
        }
        context.say(parts.joined(separator: ", "))
        // The failure of a single file stands above.
        for line in failed.lines(
            failed: tracker.count(.error), of: run, repeatsReasons: tracker.total + notAdded > 1,
            suggested: global.suggested)
        {
            // A command is copied as a whole.
            if line.hasPrefix("fk ") { context.errors.writeLine(line) } else { context.say(line) }
        }
        guard let kept = run, !isStopped, tracker.count(.suspend) > 0 else { return }
        context.say(tracker.count(.suspend) == 1 ? "Continue it with:" : "Continue them with:")
        context.errors.writeLine("\(global.suggested("fk resume --run \(kept.text)")) && \(global.suggested("fk run"))")
    }
}

extension String {
    /// The text with a full stop, unless it ends with a mark that ends a sentence.
    fileprivate var asSentence: String { last.map { ".!?…".contains($0) } ?? true ? self : self + "." }
}

extension DownloadInfo {
    /// The wait for a retry with its time; nil for a task that is only queued, because it is about to run.
    fileprivate var retryWait: Waiting? { state == .idle && wait?.until != nil ? wait : nil }

    /// True if forgetting the task deletes bytes. A running one may have some a moment later.
    var losesBytesWhenForgotten: Bool { state == .action || state != .complete && count.received > 0 }

    /// The name from the URL, if the file has it with a number.
    fileprivate var numberedName: String? {
        guard state == .complete, let fileName else { return nil }
        let name = FileNameRules.name(url: url, head: nil)
        let parts = fileName.split(separator: ".", omittingEmptySubsequences: false)
        return parts.indices.contains { index in
            guard index > 0, !parts[index].isEmpty, parts[index].allSatisfy(\.isNumber) else { return false }
            return (parts[..<index] + parts[(index + 1)...]).joined(separator: ".") == name
        } ? name : nil
    }

    /// The file's name if it is known, else the one from the URL.
    var shownName: String {
        fileName ?? FileNameRules.name(url: url, head: nil)
    }
}

extension CommandContext {
    /// Ends the output of a run that has no task: with `--json` the summary that each run has.
    func endEmptyRun() {
        guard global.json else { return }
        JSONLines(output: output).write(.summary(complete: 0, error: 0, suspend: 0, bytes: 0, seconds: 0))
    }
}
