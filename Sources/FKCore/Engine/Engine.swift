import FKMiddleware
import Foundation

/// The owner of a work path. All changes to its tasks are made here, on one thread.
///
/// ```text
/// requests (Builder, Control, Messager, mailbox)      events (transport, chains)      timer
///          \                                                  |                        /
///           +------------------------- Engine ----------------+-----------------------+
///                 |            |           |            |             |
///              TaskBook     Schedule    TaskRun      Reporter     RateLimits
///             (info files)  (order)     (one file)  (listeners)   (limits)
/// ```
///
/// It takes requests and events, passes each to the component that handles it, starts the tasks that `Schedule`
/// selects, and performs the asynchronous work of runs. It makes no decision about a file and handles none of its
/// bytes. Nothing below calls it.
package actor Engine {
    /// The tasks that may start.
    package enum Scope: Sendable {
        /// All tasks of the work path; unfinished ones resume on their own. Libraries and `fk run` use this.
        case all
        /// Only tasks that are added or chosen while this engine runs. `fk get` uses this.
        case chosen
    }

    nonisolated let executor: EngineExecutor
    private let thread: EngineThread
    /// The engine's own thread.
    nonisolated package var unownedExecutor: UnownedSerialExecutor { executor.asUnownedSerialExecutor() }

    /// The work path that this engine owns.
    nonisolated package let workPath: WorkPath
    /// The middlewares of this engine's downloader.
    nonisolated package let chains: MiddlewareChains
    nonisolated let inbox: EngineInbox
    package nonisolated let callbacks: CallbackQueue
    /// Computes digests and syncs files.
    nonisolated let diskWork = DispatchQueue(label: "fk.disk", attributes: .concurrent)
    /// True once closing has begun. Safe from any thread.
    package nonisolated let hasClosed = Locked(false)
    package let scope: Scope

    let ownership: Ownership
    let schedule: Schedule
    package let book: TaskBook
    let reporter: Reporter
    /// Makes the runs.
    private let phases: Phases
    private let destinations: Destinations
    /// The readers of tasks while they are fetched.
    let readers = Readers()
    package let limits: RateLimits
    private let sync: SyncService
    package let control: TaskControl
    package let programs: RegisteredPrograms
    /// Performs requests while the application is suspended; nil without a session.
    nonisolated let deliveries: Deliveries?
    /// The completion handlers of the system.
    var background = BackgroundEvents()
    /// True from `enterBackground` to `leaveBackground`.
    var isInBackground = false
    /// True if the queue was active before the lock was released.
    var wasActiveAsleep = false
    var post: PostBox
    let notices: WaitNotices
    private let closing: Closing
    private var isStarting = false

    package var clock: any EngineClock { schedule.clock }
    package var barrels: Barrels { book.barrels }
    var problems: Problems { book.problems }

    /// Opens a work path and acquires its lock. No task runs before `activate()`.
    ///
    /// - Parameters:
    ///   - crowd: the number of tasks that stay in memory; nil, the default, for the usual one.
    ///   - isChecked: true if the settings were validated and the work path was opened just now.
    ///   - shared: the thread and the listeners of a downloader that may have followed another engine before; nil, the
    ///     default, for new ones.
    /// - Throws: `.workPathBusy` if another process owns it; `.workPathUnusable` or `.laterVersion` if it cannot be
    ///   used; `.invalidArgument` for a setting outside its range.
    package init(
        configure: Configure, scope: Scope, transport: any Transport, chains: MiddlewareChains = .init(),
        callbacks: CallbackQueue = CallbackQueue(), clock: any EngineClock = SystemClock(), crowd: Int? = nil,
        isChecked: Bool = false, shared: (thread: EngineThread, observers: Observers)? = nil
    ) throws {
        let workPath = WorkPath(configure)
        if !isChecked {
            try configure.validate()
            try workPath.open(create: true)
        }
        let ownership = Ownership(try EngineLock.acquire(workPath), clock: clock)
        try workPath.recordBases()
        let programs = try RegisteredPrograms(workPath, chains, isOn: configure.runsMiddlewarePrograms)
        self.workPath = workPath
        self.scope = scope
        self.chains = chains
        self.callbacks = callbacks
        thread = shared?.thread ?? EngineThread(clock: clock)
        executor = thread.executor
        inbox = EngineInbox()
        post = PostBox(Mailbox(workPath))
        let problems = Problems()
        if let warning = NetworkFileSystem.warning(workPath) { problems.append(warning) }
        PublishedSets.sweep(workPath).forEach(problems.append)
        let schedule = Schedule(configure, clock: clock, executor: executor)
        let barrels = Barrels(workPath, ownership: ownership, problems: problems, clock: clock)
        let book = try TaskBook(
            workPath, ownership: ownership, problems: problems, barrels: barrels, schedule: schedule, chains: chains,
            crowd: crowd ?? (scope == .chosen ? TaskBook.tasksInMemory : TaskBook.tasksOfApplications))
        let reporter = Reporter(book, schedule, callbacks: callbacks, observers: shared?.observers ?? Observers())
        let limits = RateLimits(workPath, schedule: schedule, barrels: barrels, problems: problems)
        let sync = SyncService(book, schedule, diskWork)
        let budget = DiskBudget(schedule, workPath)
        budget.onTrim = { [unowned reporter] in reporter.trimmed($0) }
        let destinations = Destinations(schedule, chains, budget: budget)
        let deliveries = configure.background.flatMap { Deliveries($0, configure.networks, in: workPath) }
        phases = Phases(
            reporter, limits: limits, sync: sync, fetchers: Fetchers(transport, deliveries), inbox: inbox,
            destinations: destinations, diskWork: diskWork, readers: readers)
        self.deliveries = deliveries
        let control = TaskControl(
            reporter, limits: limits, sync: sync, diskWork: diskWork, engine: inbox.engine, runsAll: scope == .all)
        book.onLost = { [unowned reporter] in reporter.lost($0, group: $1) }
        book.onLoad = { [unowned control] in control.loaded($0, isFinished: $1) }
        problems.during { schedule.use(try HostPolicy.all(in: workPath)) }
        notices = WaitNotices(workPath, schedule, ownership, runsAll: scope == .all)
        closing = Closing(reporter, sync, programs, notices, deliveries, transport, executor)
        self.programs = programs
        self.ownership = ownership
        self.schedule = schedule
        self.book = book
        self.reporter = reporter
        self.limits = limits
        self.sync = sync
        self.destinations = destinations
        self.control = control
        inbox.connect(
            onEvents: { [weak self] in self?.soon { $0.handleEvents() } },
            onTurn: { [weak self] body in
                self?.soon { engine in
                    body()
                    engine.startNext()
                }
            })
        programs.connect { [weak self] name, task, state, error in
            self?.soon { $0.control.recordProgram(name, task.id, state, error) }
        }
        callbacks.connect(inbox.engine)
        if FollowerLock.isHeld(workPath) { reporter.openChanges() } else { reporter.changes.end() }
        guard let deliveries else { return }
        reporter.onState = { [unowned deliveries] in deliveries.apply($0) }
        deliveries.adopt { [weak self] in self?.soon { $0.deliveriesChanged() } }
    }

    deinit { inbox.close() }

    /// Runs a closure on the engine's thread, soon. Safe from any thread.
    nonisolated func soon(_ body: @escaping @Sendable (isolated Engine) -> Void) {
        executor.run { self.assumeIsolated { body($0) } }
    }

    /// Starts the 1-second timer and the queue (FKDownloader's `activateQueue`). Further calls have no effect.
    ///
    /// - Parameter own: limits of the command that runs this engine, for the tasks already in the work path.
    package func activate(_ own: OwnLimits? = nil) {
        guard !schedule.isActive, !ownership.isClosing else { return }
        schedule.isActive = true
        schedule.onDeadline = { [weak self] in self?.assumeIsolated { $0.onTimer() } }
        problems.during { try book.findLost() }
        for entry in book.tasks.values { book.writeRecovery(entry) }
        if scope == .all {
            let group = try? schedule.group(of: own)
            for entry in book.tasks.values { control.join(entry, group: group) }
            problems.during { try book.seeAll { control.join($0, group: group) } }
        }
        schedule.alarms.startTicking(now: clock.now)
        onTimer()
        // An earlier process may have left pieces of tasks that are complete.
        deliveriesChanged()
    }

    /// Applies a changed configuration to the running engine.
    ///
    /// - Throws: `.configurationLocked` when the work path differs; `.invalidArgument` for a setting outside its range.
    package func update(_ configure: Configure) throws {
        try ownership.checkOpen()
        try configure.validate()
        // The URL of a folder may end in a slash or not, so paths are compared.
        guard WorkPath(configure.workPath) == workPath,
            configure.bases.mapValues(\.path) == schedule.configure.bases.mapValues(\.path)
        else {
            throw DownloadError(
                .configurationLocked,
                "The work path and its bases cannot change while a downloader is live: close it and make another one.")
        }
        schedule.update(configure)
        limitsChanged()
    }

    /// Pauses the queue, or ends a pause.
    package func setPaused(_ isPaused: Bool) throws {
        try ownership.checkOpen()
        guard isPaused != schedule.isPaused else { return }
        schedule.isPaused = isPaused
        if isPaused {
            for entry in schedule.running.values {
                entry.taskRun?.restart("pause", "the queue was paused: another attempt begins when it is resumed")
            }
        }
        startNext()
    }

    private func limitsChanged() {
        for (host, count) in schedule.hosts.excess { schedule.yieldLanes(of: host, count) }
        limits.setTotal(others: true)
        startNext()
    }

    // MARK: Closing

    /// Stops all runs, keeps their bytes, writes every record and releases the work path. Every caller returns after that,
    /// except a middleware that a run waits for (`MiddlewareCall`). If only middlewares are waited for during
    /// `Closing.patience` seconds, all callers return.
    package func close() async {
        beginClosing()
        guard !ownership.isClosed, !isInChain else { return }
        await closing.ended()
    }

    /// Sets what is done when this engine has written its last record and still owns the work path.
    package func beforeRelease(_ work: @escaping @Sendable () async -> Void) { closing.lastWork = work }

    func beginClosing() {
        guard !ownership.isClosing else { return }
        deliveries?.leaves(true)
        ownership.beginClosing()
        readers.finish()
        hasClosed.withLock { $0 = true }
        thread.joinWhenReleased()
        schedule.onDeadline = nil
        limitClosing()
        Task {
            await closing.finish()
            background.drainAll().forEach { $0.call() }
            closing.releaseCallers()
        }
    }

    private func limitClosing() {
        executor.setDeadline(clock.now + Closing.patience * 1_000_000_000) { [weak self] in
            self?.assumeIsolated { if !$0.closing.isTimeUp() { $0.limitClosing() } }
        }
    }

    /// True if the caller is a middleware of this engine that a run waits for.
    var isInChain: Bool { control.isInChain }

    // MARK: Events

    /// Handles the events that the transport's thread and the request chains have posted, in order.
    func handleEvents() {
        // Slots released here are filled after all events, with one wake-up of the transport.
        isStarting = true
        destinations.folders.beginTurn()
        for event in inbox.drain() {
            guard let run = book[event.id]?.taskRun else { continue }
            run.handle(event)
            perform(run)
        }
        destinations.folders.endTurn()
        isStarting = false
        startNext()
        callHandlers()
    }

    /// Fills the free slots. It is called whenever a slot, a host or a task becomes available, so nothing waits for a
    /// tick.
    func startNext() {
        defer { if !isStarting { reporter.changes.flush() } }
        // A task that fails immediately releases its slot inside `start`. The loop below then continues instead of
        // recursing.
        guard schedule.isActive, !ownership.isClosing, !isStarting else { return }
        isStarting = true
        for request in schedule.dueRequests() {
            guard let run = book[request.id]?.taskRun else { continue }
            run.transfer?.turnCame(request.lane)
            perform(run)
        }
        while let next = schedule.next() {
            // The info file of a task that was not in memory stays open until the record at the end of a small file is written.
            // Opening it a second time would take a twentieth of the time of a small file.
            var info: OpenInfoFile?
            var known = book[next.id]
            if known == nil {
                info = OpenInfoFile()
                known = book.unpark(next.id, group: next.group, open: info)
            }
            guard let entry = known, entry.record.state == .idle, entry.run == nil else { continue }
            let run = phases.run(entry, openInfo: info)
            run.start()
            perform(run)
        }
        isStarting = false
        for host in schedule.drainFullHosts() { schedule.yieldLanes(of: host) }
        if schedule.hasTurn { schedule.setDeadline() }
        if schedule.drainPauseNews() { notices.write() }
    }

    /// Performs what a run asks for after a call from outside its events.
    func continueRun(_ run: TaskRun) {
        perform(run)
        startNext()
    }

    /// Performs the asynchronous work of a run, if it asks for any.
    private func perform(_ run: TaskRun) {
        guard let work = run.nextWork() else { return }
        let task = Task {
            await run.perform(work)
            perform(run)
            startNext()
            callHandlers()
        }
        run.performs(task)
    }

    // MARK: The timer

    /// Runs everything that is due and sets the next deadline.
    func onTimer() {
        guard schedule.isActive, !ownership.isClosing else { return }
        let now = clock.now
        let due = schedule.alarms.due(now)
        // This is not part of the tick: an expired pause that stays would be a past deadline again and again.
        schedule.hosts.endPauses(now: now)
        if due.sweep {
            problems.during { try post.mailbox.sweep(now: clock.date) }
            HostTurns.sweep(workPath, now: now, date: clock.date)
        }
        if due.tick { tick() }
        if due.report { reporter.report() }
        if due.growth { for entry in schedule.running.values { entry.taskRun?.measureGrowth() } }
        for id in due.expired { control.expire(id) }
        for id in due.woken { control.wake(id) }
        startNext()
        schedule.setDeadline()
    }

    /// The once-a-second tick: lock time, mailbox, changed records. Nothing waits for it.
    private func tick() {
        if ownership.noticesLoss() {
            // Another process may own the work path now: this engine stops without writing.
            problems.append(
                "The lock of the work path \(workPath.root) was replaced while it was in use: the downloader closes.",
                code: .workPathBusy)
            return beginClosing()
        }
        ownership.beat()
        if FollowerLock.isHeld(workPath) { reporter.openChanges() } else { reporter.changes.end() }
        readMailbox()
        if schedule.hasNewPolicies(in: workPath) { limitsChanged() }
        limits.followClock()
        for host in schedule.hosts.awaited { schedule.yieldLanes(of: host) }
        schedule.descriptors.relax(now: clock.now)
        for entry in schedule.running.values { entry.taskRun?.tick() }
        synchronizeDue()
        book.unloadIdle()
        for entry in schedule.running.values where entry.unsaved.isDirty { book.write(entry) }
        barrels.saveAll()
        notices.write()
        if schedule.running.isEmpty { destinations.folders.closeUnused(now: clock.now) }
        callHandlers()
    }

    /// Syncs finished files in the background. A closing engine waits for it, so that no finished file is open when
    /// the work path is released.
    private func synchronizeDue() {
        let files = sync.drainDue()
        guard !files.isEmpty, (try? ownership.beginOperation()) != nil else { return }
        Task {
            await sync.perform(files)
            ownership.endOperation()
        }
    }
}
