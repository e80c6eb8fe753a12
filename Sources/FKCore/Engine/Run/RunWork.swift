import FKMiddleware

/// The asynchronous work of a run, and whether the run is to stop.
///
/// ```text
/// request -> take (the engine) -> began -> done -> request …
///        stop: cancels the work; the run reports its end in `TaskRun.stopped`
/// ```
///
/// A run has one piece of work at a time.
struct RunWork {
    /// Work that waits for a disk or a middleware.
    enum Step {
        /// The finished file of another boot is compared.
        case prove
        /// A file with this name existed before. It is compared, and then counts as the result.
        case keepExisting(String)
        /// A finished file with this SHA-256 may have the bytes already.
        case reuse(String, Transfer)
        /// Finished files have to go before the rest of this one is fetched.
        case makeRoom(@Sendable () -> Result<TrimmedFiles, DownloadError>, Transfer)
        /// The bytes of another program's partial file are copied to the part file.
        case adopt(String, Transfer)
        /// A damaged file is copied to the part file, to be repaired there.
        case copyDamaged(Transfer)
        /// All bytes are there, and pieces have to be compared with a list's digests.
        case comparePieces(Verification)
        /// All bytes are there: verify, final name, response chain.
        case finish(Verification)
        /// The attempt has failed, and middlewares decide.
        case decide(FailedAttempt)

        /// False if the failed work follows the answers of a server.
        var isBeforeRequest: Bool {
            switch self {
            case .prove, .keepExisting, .reuse, .adopt, .makeRoom, .copyDamaged: true
            case .comparePieces, .finish, .decide: false
            }
        }
    }

    /// Why a run stops.
    enum Stop {
        /// The task is suspended, or the engine closes. The bytes stay.
        case keepingBytes
        /// The task is cancelled, trashed or forgotten.
        case droppingBytes
    }

    /// Set once the run is to stop.
    private(set) var stop: Stop?
    /// The work that the engine takes next.
    private var next: Step?
    private var task: Task<Void, Never>?
    /// The existing file that is being compared.
    private var comparedFile: PartFile?
    private var waiters = Waiters()

    // MARK: Steps

    /// Asks the engine to perform work.
    mutating func request(_ step: Step) { next = step }

    /// Returns the work to perform, once.
    mutating func nextStep() -> Step? { next.take() }

    /// The engine performs the work in this task.
    mutating func began(_ task: Task<Void, Never>) { self.task = task }

    /// A file is read, which a stop interrupts. nil ends it.
    mutating func compare(_ file: PartFile?) { comparedFile = file }

    // MARK: Stopping

    /// Cancels the work. A stop that drops the bytes is final.
    mutating func stop(_ stop: Stop) {
        if self.stop != .droppingBytes { self.stop = stop }
        task?.cancel()
        comparedFile?.abandon()
    }

    /// - Throws: `.cancelled` if the run is to stop.
    func check() throws(DownloadError) {
        if stop != nil { throw DownloadError(.cancelled, "The attempt was stopped.") }
    }

    // MARK: Waiting for the end

    /// True once the run has ended.
    var isOver: Bool { waiters.isOver }

    /// Adds a caller that waits for the end. It receives false if it is released before the end.
    mutating func wait(_ waiter: CheckedContinuation<Bool, Never>) { waiters.add(waiter) }

    /// The run has ended.
    mutating func end() { waiters.end() }

    /// Releases the waiting callers before the end.
    mutating func releaseWaiters() { waiters.release() }

    /// Releases callers that have waited too long for a middleware. To be called once a second.
    mutating func tick(isInMiddleware: Bool) { waiters.tick(isInMiddleware: stop != nil && isInMiddleware) }
}

/// Callers that wait for the end of a run.
private struct Waiters {
    /// The seconds for which a caller waits for a running middleware.
    private static let patience = 5

    private var continuations: [CheckedContinuation<Bool, Never>] = []
    private var ticks = 0
    private(set) var isOver = false

    mutating func add(_ continuation: CheckedContinuation<Bool, Never>) { continuations.append(continuation) }

    mutating func end() {
        isOver = true
        resume(returning: true)
    }

    mutating func release() { resume(returning: false) }

    mutating func tick(isInMiddleware: Bool) {
        guard !continuations.isEmpty, isInMiddleware else { return ticks = 0 }
        ticks += 1
        if ticks > Self.patience { release() }
    }

    private mutating func resume(returning value: Bool) {
        continuations.forEach { $0.resume(returning: value) }
        continuations = []
    }
}
