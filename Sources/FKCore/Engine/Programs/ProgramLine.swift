import FKMiddleware
import Foundation

/// The changes of state that a program of the download stage has not received yet. Changes of one task are delivered in order.
/// Those of several tasks are delivered at the same time, limited by the slots.
final class ProgramLine: Sendable {
    /// The maximum number of waiting changes. Further ones are dropped, and the next run that ends reports their number.
    static let limit = 20_000

    private struct Event: Sendable {
        var task: TaskContext
        var state: DownloadState
        var error: DownloadError?
    }

    private struct State {
        /// The tasks whose changes are being delivered, with their next changes.
        var tasks: [TaskID: [Event]] = [:]
        var count = 0
        var dropped = 0
        var isStopped = false
        var whenIdle: [CheckedContinuation<Void, Never>] = []
        var runs: [TaskID: Task<Void, Never>] = [:]
    }

    private let state = Locked(State())
    private let program: MiddlewareProgram
    private let host: ProgramHost
    private let onEnd: @Sendable (TaskContext, DownloadState, DownloadError?) -> Void

    init(
        _ program: MiddlewareProgram, _ host: ProgramHost,
        onEnd: @escaping @Sendable (TaskContext, DownloadState, DownloadError?) -> Void
    ) {
        self.program = program
        self.host = host
        self.onEnd = onEnd
    }

    /// Adds a change of state. It never blocks.
    func add(_ task: TaskContext, _ state: DownloadState, _ error: DownloadError?) {
        let event = Event(task: task, state: state, error: error)
        self.state.withLock { line in
            guard !line.isStopped else { return }
            guard line.count < Self.limit else {
                line.dropped += 1
                return
            }
            line.count += 1
            if line.tasks[task.id] != nil {
                line.tasks[task.id]?.append(event)
            } else {
                line.tasks[task.id] = [event]
                line.runs[task.id] = Task.detached { await self.tell(task.id) }
            }
        }
    }

    /// Tells one task's changes until there are none.
    private func tell(_ id: TaskID) async {
        while let event = next(id) {
            var failure = await run(event)
            let dropped = state.withLock { line in
                line.count -= 1
                defer { line.dropped = 0 }
                return line.dropped
            }
            if dropped > 0, failure == nil {
                failure = DownloadError(
                    .middleware,
                    "The middleware program \(program.name) is too slow: it missed \(dropped) changes of state."
                )
            }
            onEnd(event.task, event.state, failure)
        }
    }

    /// The next change of a task; nil if there is none, and the task's run ends.
    private func next(_ id: TaskID) -> Event? {
        let (event, idle) = state.withLock { line -> (Event?, [CheckedContinuation<Void, Never>]) in
            if var events = line.tasks[id], !events.isEmpty {
                let event = events.removeFirst()
                line.tasks[id] = events
                return (event, [])
            }
            line.tasks[id] = nil
            line.runs[id] = nil
            guard line.tasks.isEmpty else { return (nil, []) }
            defer { line.whenIdle = [] }
            return (nil, line.whenIdle)
        }
        idle.forEach { $0.resume() }
        return event
    }

    private func run(_ event: Event) async -> DownloadError? {
        do {
            let verdict = try await host.ask(program, ProgramQuestion(event.state, event.error, event.task))
            return verdict.error(of: program.name, "failed")
        } catch {
            return DownloadError(
                wrapping: error, code: .cancelled,
                message: "The middleware program \(program.name) was stopped, because the downloader closes.")
        }
    }

    /// Returns when all changes are delivered. After `patience` the running programs are killed and the remaining changes
    /// dropped.
    func finish(patience: Duration) async {
        let timer = Task.detached {
            try? await Task.sleep(for: patience)
            if !Task.isCancelled { self.stop() }
        }
        await withCheckedContinuation { continuation in
            let isIdle = state.withLock { line in
                if !line.tasks.isEmpty { line.whenIdle.append(continuation) }
                return line.tasks.isEmpty
            }
            if isIdle { continuation.resume() }
        }
        timer.cancel()
    }

    /// Kills the running programs, and drops the rest.
    func stop() {
        let runs = state.withLock { line in
            line.isStopped = true
            for id in line.tasks.keys { line.tasks[id] = [] }
            return Array(line.runs.values)
        }
        runs.forEach { $0.cancel() }
    }
}
