import FKMiddleware
import Foundation

/// The one owner of a work path: everything that happens to its tasks happens here, on one thread.
///
/// ```text
/// requests (Builder, Control, Messager, mailbox)      events (transport, chains)      timer
///          \                                                  |                        /
///           +------------------------- Engine ----------------+-----------------------+
///                 |            |           |            |             |
///              TaskBook     Schedule    TaskRun      Reporter     RateLimits
///             (info files)  (who runs)  (one file)  (who hears)   (how fast)
/// ```
///
/// It takes requests and events, hands each to the room that it is for, starts what `Schedule` says is next, and performs
/// what a run has to wait for. It decides nothing about a file and never sees a byte of one. Nothing below calls it.
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
    nonisolated let inbox: EngineInbox
    nonisolated let callbacks = CallbackQueue()
    /// Where digests are computed and files synced.
    nonisolated let diskWork = DispatchQueue(label: "fk.disk", attributes: .concurrent)
    /// True for any thread from the beginning of the closing on.
    nonisolated let hasClosed = Locked(false)
    let scope: Scope

    let tenure: Tenure
    let schedule: Schedule
    let book: TaskBook
    let reporter: Reporter
    /// What runs share; the services for them among it.
    let room: RunRoom
    let control: TaskControl
    var post: PostBox
    /// What other processes were last told about why tasks wait.
    private var lastNotice: WaitNotice
    /// Callers of `close()`.
    private var whenClosed: [CheckedContinuation<Void, Never>] = []
    private var isStarting = false

    var clock: any EngineClock { schedule.clock }
    var barrels: Barrels { book.barrels }
    var problems: Problems { book.problems }
    var limits: RateLimits { room.limits }

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
        self.scope = scope
        self.chains = chains
        executor = EngineExecutor(clock: clock)
        inbox = EngineInbox()
        post = PostBox(Mailbox(workPath))
        let tenure = Tenure(lock, clock: clock)
        let problems = Problems()
        let schedule = Schedule(configure, clock: clock, executor: executor)
        let barrels = Barrels(workPath, tenure: tenure, problems: problems, clock: clock)
        let book = TaskBook(
            workPath, tenure: tenure, problems: problems, barrels: barrels, schedule: schedule, chains: chains,
            mayRest: scope == .chosen)
        let reporter = Reporter(book, schedule, callbacks: callbacks)
        let room = RunRoom(
            reporter, limits: RateLimits(workPath, schedule: schedule, barrels: barrels, problems: problems),
            sync: SyncService(book, schedule), transport: transport, inbox: inbox, diskWork: diskWork)
        let control = TaskControl(room, runsAll: scope == .all)
        book.onLost = { [unowned reporter] in reporter.lost($0, group: $1) }
        book.onLoad = { [unowned control] in control.loaded($0, isFinished: $1) }
        lastNotice = WaitNotice.load(from: workPath)
        schedule.hosts.restorePauses(lastNotice, at: clock, atMost: configure.retry.maxRetryAfter)
        self.tenure = tenure
        self.schedule = schedule
        self.book = book
        self.reporter = reporter
        self.room = room
        self.control = control
        inbox.connect(self)
        callbacks.connect(inbox.engine)
    }

    /// Starts the 1-second polling timer and with it the queue (FKDownloader's `activateQueue`). Harmless when called
    /// again.
    ///
    /// - Parameter own: limits of the command that runs this engine, for the tasks that wait in the work path.
    package func activate(_ own: OwnLimits? = nil) {
        guard !schedule.isActive, !tenure.isClosing else { return }
        schedule.isActive = true
        schedule.onDeadline = { [weak self] in self?.assumeIsolated { $0.onTimer() } }
        book.findLost()
        for entry in book.tasks.values { book.writeRecovery(entry) }
        if scope == .all {
            book.loadAll()
            if let group = try? schedule.group(of: own) {
                for entry in book.tasks.values { control.join(entry, group: group) }
            }
        }
        schedule.alarms.startTicking(now: clock.now)
        onTimer()
    }

    package var currentConfigure: Configure { schedule.configure }

    /// Applies a changed configuration to the running engine.
    ///
    /// - Throws: `.configurationLocked` when the work path differs; `.invalidArgument` for a setting outside its range.
    package func update(_ configure: Configure) throws {
        try tenure.checkOpen()
        try configure.validate()
        // A URL of a folder may or may not end in a slash: paths are what counts.
        guard WorkPath(configure.workPath) == workPath else {
            throw DownloadError(
                .configurationLocked,
                "The work path cannot change while a downloader is live: close it and make another one.")
        }
        schedule.update(configure)
        for (host, count) in schedule.hosts.excess { room.yieldLanes(of: host, count) }
        limits.setTotal()
        startNext()
    }

    /// What could not be read or repaired so far, at most 1,000 texts; handed out once.
    package func takeProblems() -> [String] { problems.take() }

    // MARK: Closing

    /// Stops what runs, keeps its bytes, writes every record and releases the work path. Every caller returns only then,
    /// except for a middleware that a run waits for (`MiddlewareCall`).
    package func close() async {
        beginClosing()
        guard !tenure.isClosed, !isInChain else { return }
        await withCheckedContinuation { whenClosed.append($0) }
    }

    private func beginClosing() {
        guard !tenure.isClosing else { return }
        tenure.beginClosing()
        hasClosed.withLock { $0 = true }
        Task { await finishClosing() }
    }

    private func finishClosing() async {
        let runs = schedule.running.values.compactMap(\.run)
        for run in runs { run.signalStop(.keepingBytes) }
        runs.forEach { $0.releaseWaiters() }
        for run in runs { await run.ended() }
        await tenure.idle()
        let files = room.sync.takeLast()
        if !files.isEmpty { await synchronize(files) }
        for entry in book.tasks.values where entry.isDirty { book.write(entry) }
        barrels.saveAll()
        room.transport.shutdown()
        tellWaits()
        reporter.finish()
        book.close()
        tenure.close()
        whenClosed.forEach { $0.resume() }
        whenClosed = []
    }

    /// The thread stays until nobody holds the engine any more: whoever asks a closed engine gets an answer. Of a closed one
    /// it has nothing left to do, and is waited for: the next thing a program does may be to exit.
    deinit {
        executor.stop()
        if hasClosed.withLock(\.self) { executor.join() }
    }

    /// The caller is a middleware of this engine that a run waits for.
    var isInChain: Bool { control.isInChain }

    // MARK: Events

    /// Everything the transport's thread and the request chains have left since the last time, in order.
    func handleEvents() {
        // Slots that become free meanwhile are filled at once behind all of the news: one wake-up of the transport.
        isStarting = true
        for event in inbox.take() {
            guard let run = book[event.id]?.run else { continue }
            run.handle(event)
            perform(run)
        }
        isStarting = false
        startNext()
    }

    /// Fills the free slots. Called whenever a slot, a host or a task becomes free: nothing waits for a tick.
    func startNext() {
        // A task that fails at once gives its slot back inside `start`: the loop below then goes on, not deeper.
        guard schedule.isActive, !tenure.isClosing, !isStarting else { return }
        isStarting = true
        while let next = schedule.next() {
            // The info file of one that rested stays open for the record that a small file has at its end: opening it twice
            // is a twentieth of a small file's time.
            var info: OpenInfoFile?
            if book[next.id] == nil {
                info = OpenInfoFile()
                guard book.unpark(next.id, group: next.group, open: info) != nil else { continue }
            }
            guard let entry = book[next.id], entry.record.state == .idle, entry.run == nil else { continue }
            let run = TaskRun(entry, in: room, openInfo: info)
            run.start()
            perform(run)
        }
        isStarting = false
        for host in schedule.takeFullHosts() { room.yieldLanes(of: host) }
        if schedule.takePauseNews() { tellWaits() }
    }

    /// Performs what a run has to wait for. Where there is nothing to wait for, that is over when this returns.
    private func perform(_ run: TaskRun) {
        while let work = run.takeWork() {
            let task = Task.immediate {
                await run.perform(work)
                perform(run)
                startNext()
            }
            run.performs(task)
        }
    }

    // MARK: The timer

    /// Runs whatever is due and sets the next deadline.
    private func onTimer() {
        guard schedule.isActive, !tenure.isClosing else { return }
        let now = clock.now
        let due = schedule.alarms.due(now)
        // Here and not in the tick: an expired pause that stays would be a deadline in the past, again and again.
        schedule.hosts.endPauses(now: now)
        if due.sweep { post.mailbox.sweep(now: clock.date) }
        if due.tick { tick() }
        if due.report { reporter.report() }
        if due.growth { for entry in schedule.running.values { entry.run?.measureGrowth() } }
        for id in due.woken { wake(id) }
        startNext()
        schedule.setDeadline()
    }

    /// A retry has become due.
    private func wake(_ id: TaskID) {
        guard let entry = book[id], entry.record.state == .idle else { return }
        entry.record.stopWaiting()
        schedule.enqueue(entry, host: book.shared(HostName.site(entry.nextURL)))
    }

    /// The heartbeat, once a second: lock time, mailbox, changed records. Nothing waits for it.
    private func tick() {
        if tenure.noticesLoss() {
            // Somebody else may be the engine: this one stops without writing anything.
            problems.append(
                "The lock of the work path \(workPath.root) was replaced while it was in use: the downloader closes.")
            return beginClosing()
        }
        tenure.beat()
        readMailbox()
        schedule.descriptors.relax(now: clock.now)
        for entry in schedule.running.values { entry.run?.tick() }
        synchronizeDue()
        for entry in schedule.running.values where entry.isDirty { book.write(entry) }
        barrels.saveAll()
        tellWaits()
    }

    /// Writes down why tasks wait, where that has changed: other processes show it, and the next engine keeps to the pauses.
    private func tellWaits() {
        guard tenure.mayWrite else { return }
        let notice = schedule.notice(isClosing: tenure.isClosing)
        guard notice != lastNotice else { return }
        lastNotice = notice
        // Only others read it: a disk that is full keeps nobody from downloading.
        try? notice.save(in: workPath)
    }

    /// Has finished files synced in the background. A closing engine waits for it: when the work path is released, no
    /// finished file is open.
    private func synchronizeDue() {
        let files = room.sync.takeDue()
        guard !files.isEmpty, (try? tenure.beginOperation()) != nil else { return }
        Task {
            await synchronize(files)
            tenure.endOperation()
        }
    }

    private func synchronize(_ files: [SyncBacklog.File]) async {
        let synced = await withCheckedContinuation { continuation in
            diskWork.async { continuation.resume(returning: SyncService.synchronize(files)) }
        }
        synced.forEach { room.sync.note($0) }
    }
}
