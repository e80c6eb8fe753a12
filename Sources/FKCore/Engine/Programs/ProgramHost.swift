import FKMiddleware
import Foundation

/// Runs programs: a limited number of each stage at once, all of them on one thread that exists only while there are some.
/// Callers wait without a thread. Each stage has slots of its own, so programs that only listen hold back none that decides.
///
/// ```text
/// run -> slot of the stage -> prepare (a queue of its own) -> posix_spawn -> poll: pipes and exit -> result
/// ```
final class ProgramHost: Sendable {
    /// The host of this process.
    static let shared = ProgramHost()

    private let slots: [MiddlewareProgram.Stage: ProgramSlots]
    private let state = Locked(State())
    private let files = DispatchQueue(label: "fk.programs", attributes: .concurrent)

    private struct State {
        /// Accepted and not yet taken by the thread.
        var jobs: [Job] = []
        var isRunning = false
        /// Written to wake the thread; -1 without a thread.
        var wake: Int32 = -1
    }

    /// One run, as the thread takes it.
    private struct Job: Sendable {
        let call: ProgramCall
        let isCancelled: Locked<Bool>
        let report: @Sendable (ProgramResult) -> Void
    }

    /// Creates a host.
    ///
    /// - Parameter slots: the maximum number of programs of a stage at the same time; nil, the default, allows four for each
    ///   processor, because most programs wait for something, and two of the download stage, which decides nothing.
    init(slots: Int? = nil) {
        let processors = max(1, ProcessInfo.processInfo.activeProcessorCount)
        self.slots = Dictionary(
            uniqueKeysWithValues: MiddlewareProgram.Stage.allCases.map { stage in
                (stage, ProgramSlots(slots ?? (stage == .download ? 2 : 4) * processors))
            })
    }

    /// Runs a program. Its time limit begins with its start, not while it waits for a slot.
    ///
    /// - Parameters:
    ///   - stage: the stage whose slots it uses; the default is `.request`.
    ///   - prepare: makes the call once there is a slot, on a thread that may block. What it throws is thrown here.
    /// - Throws: `CancellationError` if the Swift task is cancelled. The program and its children are killed then.
    func run(
        _ stage: MiddlewareProgram.Stage = .request, _ prepare: @escaping @Sendable () throws -> ProgramCall
    ) async throws -> ProgramResult {
        let slots = slots[stage]
        try await slots?.acquire()
        defer { slots?.release() }
        let call = try await withCheckedThrowingContinuation { continuation in
            files.async { continuation.resume(with: Result { try prepare() }) }
        }
        try Task.checkCancellation()
        let isCancelled = Locked(false)
        let result = await withTaskCancellationHandler {
            await withCheckedContinuation { continuation in
                add(Job(call: call, isCancelled: isCancelled) { continuation.resume(returning: $0) })
            }
        } onCancel: {
            isCancelled.withLock { $0 = true }
            wake()
        }
        try Task.checkCancellation()
        return result
    }

    private func add(_ job: Job) {
        let failure: SpawnedProgram.Failure? = state.withLock { state in
            if !state.isRunning {
                do throws(SpawnedProgram.Failure) {
                    let pipe = try SpawnedProgram.makePipe()
                    for end in pipe { _ = fcntl(end, F_SETFL, fcntl(end, F_GETFL) | O_NONBLOCK) }
                    state.wake = pipe[1]
                    state.isRunning = true
                    WorkThread().start(name: "fk.programs", stackSize: 512 << 10) { self.loop(waking: pipe[0]) }
                } catch {
                    return error
                }
            }
            state.jobs.append(job)
            return nil
        }
        if let failure {
            job.report(ProgramResult(end: Self.notStarted(failure, job.call)))
        } else {
            wake()
        }
    }

    private func wake() {
        state.withLock { state in
            var byte: UInt8 = 1
            if state.wake >= 0 { _ = write(state.wake, &byte, 1) }
        }
    }

    private static func notStarted(_ failure: SpawnedProgram.Failure, _ call: ProgramCall) -> ProgramResult.End {
        .notStarted(
            ProgramPath.reason(failure.code, call.path, directory: call.directory), isRetryable: failure.isRetryable)
    }

    // MARK: The thread

    /// The interval at which ends are looked for where the system has no descriptor for them.
    private static let interval: Int64 = 10_000_000

    private static var now: Int64 { SystemClock().now }

    private func loop(waking: Int32) {
        // A program that does not read its input must not end this process, which may be an application's.
        var pipeSignal = sigset_t()
        sigemptyset(&pipeSignal)
        sigaddset(&pipeSignal, SIGPIPE)
        pthread_sigmask(SIG_BLOCK, &pipeSignal, nil)

        var programs: [(process: ProgramProcess, isCancelled: Locked<Bool>)] = []
        while let jobs = nextJobs(isIdle: programs.isEmpty) {
            for job in jobs { if let program = Self.start(job) { programs.append((program, job.isCancelled)) } }
            wait(programs.map(\.process), waking)
            let now = Self.now
            for (program, isCancelled) in programs {
                if isCancelled.withLock({ $0 }) { program.cancel() }
                program.feed()
                program.drain(now)
                program.look(now)
            }
            programs.removeAll(where: \.process.isOver)
        }
        FileIO.close(waking)
    }

    /// The new jobs; nil if the thread is to end, because there is nothing to do.
    private func nextJobs(isIdle: Bool) -> [Job]? {
        state.withLock { state in
            if isIdle, state.jobs.isEmpty {
                FileIO.close(state.wake)
                state.wake = -1
                state.isRunning = false
                return nil
            }
            defer { state.jobs = [] }
            return state.jobs
        }
    }

    private static func start(_ job: Job) -> ProgramProcess? {
        do throws(SpawnedProgram.Failure) {
            let program = try SpawnedProgram.start(job.call)
            return ProgramProcess(
                program, input: job.call.input, timeLimit: job.call.timeLimit, sink: job.call.sink, now: now,
                report: job.report)
        } catch {
            job.report(ProgramResult(end: notStarted(error, job.call)))
            return nil
        }
    }

    /// Sleeps until a pipe, a process or the time has news.
    private func wait(_ programs: [ProgramProcess], _ waking: Int32) {
        guard !programs.isEmpty else { return }
        var polled = [pollfd(fd: waking, events: Int16(POLLIN), revents: 0)]
        var deadline = Int64.max
        var mustLook = false
        for program in programs {
            if program.input >= 0 { polled.append(pollfd(fd: program.input, events: Int16(POLLOUT), revents: 0)) }
            for end in [program.output, program.errors, program.ending] where end >= 0 {
                polled.append(pollfd(fd: end, events: Int16(POLLIN), revents: 0))
            }
            if program.mustLook { mustLook = true }
            deadline = min(deadline, program.deadline ?? .max)
        }
        let now = Self.now
        if mustLook { deadline = min(deadline, now + Self.interval) }
        let timeout = deadline == .max ? -1 : Int32(min(max(0, deadline - now + 999_999) / 1_000_000, 1_000_000))
        _ = poll(&polled, nfds_t(polled.count), timeout)
        guard polled[0].revents != 0 else { return }
        var bytes: (UInt64, UInt64) = (0, 0)
        while read(waking, &bytes, 16) == 16 {}
    }
}
