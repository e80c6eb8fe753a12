import FKMiddleware
import Foundation

/// The changes of state that a program of the download stage has not received yet. Changes of one task are delivered in order.
/// Those of several tasks are delivered at the same time, limited by the slots.
///
/// Every change is delivered while the program keeps up. While more than `crowd` changes wait, one that a later change of the
/// same task follows is left out; the states in which a task ends are always delivered.
final class ProgramLine: Sendable {
    /// The number of waiting changes from which a task's newest change replaces the one before it.
    static let crowd = 64
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
            if line.count > Self.crowd, let last = line.tasks[task.id]?.last, !last.state.isSettled {
                line.tasks[task.id]?.removeLast()
                line.tasks[task.id]?.append(event)
                return
            }
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
        while mustTell(id) {
            let (told, error) = await run(id)
            // A program that could not be started has not taken the change.
            guard let event = told ?? remove(id) else { continue }
            var failure = error
            let dropped = state.withLock { line in
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

    /// True if a change of a task waits. Without one, the task's run ends.
    private func mustTell(_ id: TaskID) -> Bool {
        let (mustTell, idle) = state.withLock { line -> (Bool, [CheckedContinuation<Void, Never>]) in
            if line.tasks[id]?.isEmpty == false { return (true, []) }
            line.tasks[id] = nil
            line.runs[id] = nil
            guard line.tasks.isEmpty else { return (false, []) }
            defer { line.whenIdle = [] }
            return (false, line.whenIdle)
        }
        idle.forEach { $0.resume() }
        return mustTell
    }

    /// Removes and returns the next change of a task; nil if there is none.
    private func remove(_ id: TaskID) -> Event? {
        state.withLock { line in
            guard line.tasks[id]?.isEmpty == false else { return nil }
            line.count -= 1
            return line.tasks[id]?.removeFirst()
        }
    }

    /// Runs the program for a task's next change, which is chosen once there is a slot.
    ///
    /// - Returns: the change, if the program was asked, and the error of the run.
    private func run(_ id: TaskID) async -> (Event?, DownloadError?) {
        let told = Locked<Event?>(nil)
        do {
            let verdict = try await host.ask(program, id.hex, mask: { $0 }) {
                guard let event = self.remove(id) else { throw CancellationError() }
                told.withLock { $0 = event }
                return ProgramQuestion(event.state, event.error, event.task)
            }
            return (told.withLock(\.self), verdict.error(of: program.name, "failed"))
        } catch {
            let error = DownloadError(
                wrapping: error, code: .cancelled,
                message: "The middleware program \(program.name) was stopped, because the downloader closes.")
            return (told.withLock(\.self), error)
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
            line.count = 0
            for id in line.tasks.keys { line.tasks[id] = [] }
            return Array(line.runs.values)
        }
        runs.forEach { $0.cancel() }
    }
}
