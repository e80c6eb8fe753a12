import FKMiddleware

/// The time for which an engine owns its work path: from the lock to its release, with what must end before that.
///
/// ```text
/// open -> closing (nothing new begins) -> idle (all that began has ended) -> closed
///   +---> lost (the lock file was replaced: nothing is written any more)
/// ```
///
/// Confined to the engine.
final class Tenure {
    private let lock: EngineLock
    private let clock: any EngineClock
    /// No operation begins any more.
    private(set) var isClosing = false
    private(set) var isClosed = false
    /// Another engine has the work path.
    private(set) var isLost = false
    /// Operations that have begun and not ended.
    private var operations = 0
    private var whenIdle: CheckedContinuation<Void, Never>?
    /// When a request that takes long touches the lock next.
    private var nextBeat: Int64 = 0

    init(_ lock: EngineLock, clock: any EngineClock) {
        self.lock = lock
        self.clock = clock
    }

    /// False once the lock is released or lost: the files are another engine's then.
    var mayWrite: Bool { !isClosed && !isLost }

    /// - Throws: `.cancelled` once the engine closes: the work path may be another engine's by then.
    func checkOpen() throws(DownloadError) {
        guard !isClosing else { throw DownloadError(.cancelled, "The downloader is closed.") }
    }

    // MARK: Operations

    /// Begins a request that changes tasks: the lock is held until `endOperation`.
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

    /// Returns once every operation has ended. For one caller.
    func idle(isolation: isolated (any Actor)? = #isolation) async {
        if operations > 0 { await withCheckedContinuation { whenIdle = $0 } }
    }

    // MARK: The lock

    /// Shows other processes that this engine is alive: once a second, also in the middle of a long request.
    func beat() {
        let now = clock.now
        guard now >= nextBeat else { return }
        nextBeat = now + 1_000_000_000
        try? lock.touch(clock.date)
    }

    /// Looks whether somebody has replaced the lock file; true the first time that is seen.
    func noticesLoss() -> Bool {
        guard !isLost, lock.isReplaced else { return false }
        isLost = true
        return true
    }

    /// True where this boot's first engine has looked for lost files.
    var isExamined: Bool { lock.isExamined }

    func noteExamined() { lock.noteExamined() }

    // MARK: Closing

    func beginClosing() { isClosing = true }

    /// Releases the lock.
    func close() {
        lock.release()
        isClosed = true
    }
}
