import FKMiddleware

/// The period in which an engine owns its work path, from acquiring the lock to releasing it. It counts the
/// operations that must end before the release.
///
/// ```text
/// open -> closing (nothing new begins) -> idle (all that began has ended) -> closed
///   +---> lost (the lock file was replaced: nothing is written any more)
/// ```
///
/// Confined to the engine.
final class Ownership {
    private var lock: EngineLock
    private let clock: any EngineClock
    /// True once no operation may begin any more.
    private(set) var isClosing = false
    private(set) var isClosed = false
    /// True if another engine has taken the work path.
    private(set) var isLost = false
    /// True while the lock is released because the process may be suspended (`sleep`).
    private(set) var isAsleep = false
    /// True if another process has used the work path while this one had released the lock (`sleep`).
    private(set) var wasUsedAsleep = false
    /// The content of the lock file when it was released.
    private var lastContent: [UInt8]?
    private var operations = 0
    private var whenIdle: CheckedContinuation<Void, Never>?
    /// The time of the next update of the lock file.
    private var nextBeat: Int64 = 0

    init(_ lock: EngineLock, clock: any EngineClock) {
        self.lock = lock
        self.clock = clock
    }

    /// False once the lock is released or lost. The files then belong to another engine.
    var mayWrite: Bool { !isClosed && !isLost && !isAsleep }

    /// - Throws: `.cancelled` once the engine closes, since another engine may own the work path by then; `.workPathBusy` if it closes
    ///   because another process has used the work path meanwhile, which is no cancellation by the application.
    func checkOpen() throws(DownloadError) {
        guard !isClosing else {
            guard wasUsedAsleep else { throw DownloadError(.cancelled, "The downloader is closed.") }
            throw DownloadError(
                .workPathBusy,
                "Another process has used the work path while this application was in the background, so the downloader has "
                    + "closed: create another one.")
        }
        guard !isAsleep else {
            throw DownloadError(.cancelled, "The downloader is in the background: call leaveBackground() first.")
        }
    }

    // MARK: Operations

    /// Begins a request that changes tasks. The lock is held until `endOperation`.
    ///
    /// - Throws: `.cancelled` once the engine closes.
    func beginOperation() throws(DownloadError) {
        try checkOpen()
        operations += 1
    }

    func endOperation() {
        operations -= 1
        if operations == 0 { whenIdle.take()?.resume() }
    }

    /// Returns once all operations have ended. Only one caller may wait.
    func idle(isolation: isolated (any Actor)? = #isolation) async {
        if operations > 0 { await withCheckedContinuation { whenIdle = $0 } }
    }

    // MARK: The lock

    /// Updates the lock file once a second, also during a long request, so that other processes see that this engine
    /// is alive.
    func beat() {
        let now = clock.now
        guard now >= nextBeat else { return }
        nextBeat = now + 1_000_000_000
        try? lock.touch(clock.date)
    }

    /// Checks whether the lock file was replaced. Returns true only the first time.
    func noticesLoss() -> Bool {
        guard !isLost, lock.isReplaced else { return false }
        isLost = true
        return true
    }

    /// True if an engine has already searched for lost files since the system started.
    var isExamined: Bool { lock.isExamined }

    func recordExamined() { lock.recordExamined() }

    // MARK: Suspension

    /// Releases the lock until `wake`. The system ends an application that is suspended with a lock in a shared container.
    func sleep(_ workPath: WorkPath) {
        lastContent = EngineLock.content(workPath)
        lock.release()
        isAsleep = true
    }

    /// Acquires the lock again. If another process has owned the work path meanwhile, the records in memory may be outdated: the lock
    /// counts as lost.
    func wake(_ workPath: WorkPath) {
        guard isAsleep else { return }
        isAsleep = false
        let isUntouched = EngineLock.content(workPath) == lastContent
        if isUntouched, let lock = try? EngineLock.tryAcquire(workPath) {
            self.lock = lock
        } else {
            (isLost, wasUsedAsleep) = (true, true)
        }
    }

    // MARK: Closing

    func beginClosing() { isClosing = true }

    /// Releases the lock.
    func close() {
        lock.release()
        isClosed = true
    }
}
