import FKMiddleware
import Foundation

/// The one owner of a work path: everything that happens to its tasks happens here, on one thread.
///
/// ```text
///            perform(request)  <- Builder, Control, Messager, mailbox
///                  |
///   info files <- Engine -> ready queue -> request chain -> Transport -> RangeReceiver -> part file
///                  ^                                                          |
///                  +---- events in batches (gate, end) <----------------------+
///                  |
///                  +--> verify -> final name -> response chain -> complete | error | retry
/// ```
///
/// It performs what pure rules decide: `StateMachine` (verbs), `ReadyQueue` (who is next), `ResumeRules` (what to ask
/// and what an answer means), `RetryRules` (what follows a failure), `FileNameRules` (names). It never sees a byte of a
/// body. The parts are in the other files of this folder: submission, scheduling, attempts, completion, verbs, barrels,
/// observers.
package actor Engine {
    /// Which tasks may start.
    package enum Scope: Sendable {
        /// All of the work path: background tasks go on by themselves. What libraries and `fk run` use.
        case all
        /// Only tasks that are added or chosen while this engine runs. What `fk get` uses.
        case chosen
    }

    nonisolated let executor: EngineExecutor
    nonisolated package var unownedExecutor: UnownedSerialExecutor { executor.asUnownedSerialExecutor() }

    nonisolated package let workPath: WorkPath
    nonisolated package let chains: MiddlewareChains
    nonisolated let clock: any EngineClock
    nonisolated let inbox: EngineInbox
    nonisolated let callbacks = CallbackQueue()
    nonisolated let diskWork = DispatchQueue(label: "fk.disk", attributes: .concurrent)
    let transport: any Transport
    let scope: Scope
    let lock: EngineLock
    /// Marks finished files as those of this work path.
    let owner: FileOwner
    let mailbox: Mailbox
    let numbers: SubmissionCounter

    var configure: Configure
    var isActive = false
    var isClosing = false
    private(set) var isClosed = false
    /// The same for any thread, and true from the beginning of the closing on.
    nonisolated let hasClosed = Locked(false)
    /// Another engine has the work path.
    private(set) var hasLostLock = false
    /// Callers of `close()`.
    private var whenClosed: [CheckedContinuation<Void, Never>] = []
    /// Verbs and additions that have begun and not ended.
    private var operations = 0
    private var whenIdle: CheckedContinuation<Void, Never>?
    var isScheduling = false
    /// Every record of the work path has been read.
    var hasLoadedAll = false
    /// Info files of tasks that are not in memory yet are being written; who wants to add as well waits for its turn.
    var isMaking = false
    var whenMade: [CheckedContinuation<Void, Never>] = []

    /// Requests of other processes that have not begun yet.
    var messages: [(MessageID, Result<EngineRequest, DownloadError>)] = []
    var isReadingMessages = false
    var hasReadMailbox = false
    /// What was in the mailbox when this engine began is under way.
    var hasHandledLeftovers = false
    var whenLeftoversHandled: [CheckedContinuation<Void, Never>] = []

    var tasks = TaskMap<TaskEntry>()
    /// Known tasks by URL, usually one; nil until somebody asks by URL for the first time.
    var tasksByURL: ExactMap<[TaskID]>?
    var texts = SharedTexts()
    /// Finished tasks that are on disk alone (`Engine+Resting`).
    var retired = TaskIDTable()
    var ready: ReadyQueue
    var running: [TaskID: TaskEntry] = [:]
    var descriptors = DescriptorBudget()
    /// Attempts begun by this engine.
    var startCount: UInt64 = 0
    var hosts: HostBudget
    /// What other processes were last told about why tasks wait.
    var lastNotice: WaitNotice
    var folders = FolderCache()
    var barrels: BarrelBook
    var names = NameNumbers()
    let totalLimiter: RateLimiter
    /// What `fk limit` set for all tasks of the work path.
    var standingLimit: Int64?
    var barrelLimiters = ExactMap<RateLimiter>()
    var groups = CommandGroups()
    var taskLimiters: [TaskID: RateLimiter] = [:]

    var observers = Observers()
    /// Finished files that are synced in the background.
    var unsynced = SyncBacklog()
    var smallFiles = SmallFileRoom()
    /// When it was made, in nanoseconds of its clock.
    let opened: Int64
    var alarms: Alarms
    /// When the lock is written next by a request that takes long.
    var nextBeat: Int64 = 0
    /// Admitted tasks that can still run: idle or in action.
    var openCount = 0
    var problems = Problems()

    /// Opens a work path and becomes its engine. Nothing runs before `activate()`.
    ///
    /// - Throws: `.workPathBusy` when another process owns it; `.workPathUnusable` or `.laterVersion` otherwise;
    ///   `.invalidArgument` for a setting outside its range.
    package init(
        configure: Configure, scope: Scope, transport: any Transport, chains: MiddlewareChains = .init(),
        clock: any EngineClock = SystemClock()
    ) throws {
        try configure.validate()
        let workPath = WorkPath(configure.workPath)
        try workPath.open(create: true)
        guard let lock = try EngineLock.tryAcquire(workPath) else {
            let holder = EngineLock.holder(workPath).map { "process \($0.pid) on \($0.host)" } ?? "another process"
            throw DownloadError(
                .workPathBusy,
                "The work path \(workPath.root) is in use by \(holder): close its downloader, or use another work path.",
                isRetryable: true)
        }
        self.workPath = workPath
        self.lock = lock
        owner = FileOwner(of: workPath.root)
        self.configure = configure
        self.scope = scope
        self.transport = transport
        self.chains = chains
        self.clock = clock
        mailbox = Mailbox(workPath)
        barrels = BarrelBook(workPath)
        numbers = SubmissionCounter(workPath)
        executor = EngineExecutor(clock: clock)
        inbox = EngineInbox()
        ready = ReadyQueue(order: configure.order)
        do {
            standingLimit = try StandingLimit.read(in: workPath)
        } catch {
            problems.append(
                "The work path's rate limit cannot be read, and does not hold until it is set again: \(error)")
        }
        totalLimiter = RateLimiter(
            rate: Self.tightest(configure.rateLimit, standingLimit), now: clock.now)
        opened = clock.now
        alarms = Alarms(now: clock.now)
        hosts = HostBudget(limit: configure.maxConnectionsPerHost)
        lastNotice = WaitNotice.load(from: workPath)
        hosts.restorePauses(lastNotice, at: clock, atMost: configure.retry.maxRetryAfter)
        inbox.connect(self)
        callbacks.connect(ObjectIdentifier(self))
    }

    /// Starts the 1-second polling timer and with it the queue (FKDownloader's `activateQueue`). Harmless when called
    /// again.
    ///
    /// - Parameter own: limits of the command that runs this engine, for the tasks that wait in the work path.
    package func activate(_ own: OwnLimits? = nil) {
        guard !isActive, !isClosing else { return }
        isActive = true
        if !lock.isExamined {
            findLost()
            lock.noteExamined()
        }
        for entry in tasks.values where entry.isRecovered { write(entry) }
        if scope == .all {
            loadAll()
            if let group = try? group(of: own) { for entry in tasks.values { join(entry, group: group) } }
        }
        alarms.startTicking(now: clock.now)
        onTimer()
    }

    // MARK: Closing

    /// Stops what runs, keeps its bytes, writes every record and releases the work path. Every caller returns only then,
    /// except for a middleware that an attempt waits for (`MiddlewareCall`).
    package func close() async {
        beginClosing()
        guard !isClosed, !MiddlewareCall.isInside(ObjectIdentifier(self), .chain) else { return }
        await withCheckedContinuation { whenClosed.append($0) }
    }

    private func beginClosing() {
        guard !isClosing else { return }
        isClosing = true
        hasClosed.withLock { $0 = true }
        Task { await finishClosing() }
    }

    private func finishClosing() async {
        let attempts = running.values.compactMap { signalStop(of: $0, .keepingBytes) }
        attempts.forEach { $0.releaseWaiters() }
        for attempt in attempts { await attempt.ended() }
        if operations > 0 { await withCheckedContinuation { whenIdle = $0 } }
        await syncBeforeClosing()
        for entry in tasks.values where entry.isDirty { write(entry) }
        saveAllBarrels()
        transport.shutdown()
        tellWaits()
        reportBarrels()
        endListeners(observers.finish())
        if mayWrite { numbers.close() }
        lock.release()
        isClosed = true
        whenClosed.forEach { $0.resume() }
        whenClosed = []
    }

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

    /// False once the lock is released or lost: what is on the disk is another engine's then.
    var mayWrite: Bool { !isClosed && !hasLostLock }

    /// The lock file was replaced: somebody else may be the engine, and this one stops without writing anything.
    private func noteLostLock() {
        hasLostLock = true
        problems.append(
            "The lock of the work path \(workPath.root) was replaced while it was in use: the downloader closes.")
        beginClosing()
    }

    /// The thread stays until nobody holds the engine any more: whoever asks a closed engine gets an answer. Of a closed one
    /// it has nothing left to do, and is waited for: the next thing a program does may be to exit.
    deinit {
        executor.stop()
        if isClosed { executor.join() }
    }

    /// - Throws: `.cancelled` once the engine closes: the work path may be another engine's by then.
    func checkOpen() throws(DownloadError) {
        guard !isClosing else { throw DownloadError(.cancelled, "The downloader is closed.") }
    }

    /// What could not be read or repaired so far, at most 1,000 texts; handed out once.
    package func takeProblems() -> [String] {
        problems.take()
    }

    /// Applies a changed configuration to the running engine.
    ///
    /// - Throws: `.configurationLocked` when the work path differs; `.invalidArgument` for a setting outside its range.
    package func update(_ configure: Configure) throws {
        try checkOpen()
        try configure.validate()
        // A URL of a folder may or may not end in a slash: paths are what counts.
        guard WorkPath(configure.workPath) == workPath else {
            throw DownloadError(
                .configurationLocked,
                "The work path cannot change while a downloader is live: close it and make another one.")
        }
        if configure.order != self.configure.order { ready.setOrder(configure.order) }
        self.configure = configure
        hosts.limit = configure.maxConnectionsPerHost
        for (host, count) in hosts.excess { yieldLanes(of: host, count) }
        setTotalLimit()
        schedule()
    }

    package var currentConfigure: Configure { configure }

    // MARK: The timer

    /// Runs whatever is due and sets the next deadline.
    func onTimer() {
        guard isActive, !isClosing else { return }
        let now = clock.now
        let due = alarms.due(now)
        // Here and not in the tick: an expired pause that stays would be a deadline in the past, again and again.
        hosts.endPauses(now: now)
        if due.sweep { mailbox.sweep(now: clock.date) }
        if due.tick { tick() }
        if due.report { report() }
        if due.growth { measureGrowth() }
        for id in due.woken { wake(id) }
        schedule()
        setDeadline()
    }

    func setDeadline() {
        guard isActive, !isClosing else { return }
        executor.setDeadline(min(alarms.next, hosts.nextEnd ?? .max)) { [weak self] in
            self?.assumeIsolated { $0.onTimer() }
        }
    }

    /// Shows other processes that this engine is alive: once a second, also in the middle of a long request.
    func beat() {
        let now = clock.now
        guard now >= nextBeat else { return }
        nextBeat = now + 1_000_000_000
        try? lock.touch(clock.date)
    }

    /// The heartbeat, once a second: lock time, mailbox, changed records. Nothing waits for it.
    private func tick() {
        if lock.isReplaced { return noteLostLock() }
        beat()
        readMailbox()
        descriptors.relax(now: clock.now)
        watchLanes()
        releaseLongWaiters()
        recordSlowSmallFiles()
        for entry in running.values { entry.attempt?.counters.flush() }
        syncFinished()
        for entry in running.values where entry.isDirty { write(entry) }
        saveAllBarrels()
        tellWaits()
    }
}
