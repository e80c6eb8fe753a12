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
    let limits: RateLimits
    private let sync: SyncService
    private let transport: any Transport
    package let control: TaskControl
    let programs: RegisteredPrograms
    /// Performs requests while the application is suspended; nil without a session.
    nonisolated let deliveries: Deliveries?
    /// The completion handlers of the system.
    var background = BackgroundEvents()
    /// True from `enterBackground` to `leaveBackground`.
    var isInBackground = false
    /// True if the queue was active before the lock was released.
    var wasActiveAsleep = false
    var post: PostBox
    /// The reasons for waiting that were last written for other processes.
    private var lastNotice: WaitNotice
    /// Callers of `close()` that wait for its end.
    private var whenClosed: [CheckedContinuation<Void, Never>] = []
    private var isStarting = false
    /// Called before the work path is released.
    private var lastWork: (@Sendable () async -> Void)?

    package var clock: any EngineClock { schedule.clock }
    package var barrels: Barrels { book.barrels }
    var problems: Problems { book.problems }

    /// Opens a work path and acquires its lock. No task runs before `activate()`.
    ///
    /// - Throws: `.workPathBusy` if another process owns it; `.workPathUnusable` or `.laterVersion` if it cannot be
    ///   used; `.invalidArgument` for a setting outside its range.
    package init(
        configure: Configure, scope: Scope, transport: any Transport, chains: MiddlewareChains = .init(),
        clock: any EngineClock = SystemClock()
    ) throws {
        try self.init(
            configure: configure, scope: scope, transport: transport, chains: chains, clock: clock, crowd: nil)
    }

    /// - Parameters:
    ///   - crowd: the number of tasks that stay in memory; nil for the usual one.
    ///   - isChecked: true if the settings were validated and the work path was opened just now.
    ///   - shared: the thread and the listeners of a downloader that may have followed another engine before; nil, the
    ///     default, for new ones.
    package init(
        configure: Configure, scope: Scope, transport: any Transport, chains: MiddlewareChains = .init(),
        callbacks: CallbackQueue = CallbackQueue(), clock: any EngineClock, crowd: Int? = nil, isChecked: Bool = false,
        shared: (thread: EngineThread, observers: Observers)? = nil
    ) throws {
        let workPath = WorkPath(configure)
        if !isChecked {
            try configure.validate()
            try workPath.open(create: true)
        }
        guard let lock = try EngineLock.tryAcquire(workPath) else {
            let holder = EngineLock.holder(workPath).map { "process \($0.pid) on \($0.host)" } ?? "another process"
            throw DownloadError(
                .workPathBusy,
                "The work path \(workPath.root) is in use by \(holder).",
                isRetryable: true, remedy: .chooseWorkPath)
        }
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
        let ownership = Ownership(lock, clock: clock)
        let problems = Problems()
        if let warning = NetworkFileSystem.warning(workPath) { problems.append(warning) }
        let schedule = Schedule(configure, clock: clock, executor: executor)
        let barrels = Barrels(workPath, ownership: ownership, problems: problems, clock: clock)
        let book = try TaskBook(
            workPath, ownership: ownership, problems: problems, barrels: barrels, schedule: schedule, chains: chains,
            crowd: crowd ?? (scope == .chosen ? TaskBook.tasksInMemory : TaskBook.tasksOfApplications))
        let reporter = Reporter(book, schedule, callbacks: callbacks, observers: shared?.observers ?? Observers())
        let limits = RateLimits(workPath, schedule: schedule, barrels: barrels, problems: problems)
        let sync = SyncService(book, schedule)
        let destinations = Destinations(schedule, chains)
        let deliveries = configure.background.flatMap { Deliveries($0, configure.networks, in: workPath) }
        phases = Phases(
            reporter, limits: limits, sync: sync, transport: transport, inbox: inbox, destinations: destinations,
            diskWork: diskWork, deliveries: deliveries)
        self.deliveries = deliveries
        let control = TaskControl(
            reporter, limits: limits, sync: sync, diskWork: diskWork, engine: inbox.engine, runsAll: scope == .all)
        book.onLost = { [unowned reporter] in reporter.lost($0, group: $1) }
        book.onLoad = { [unowned control] in control.loaded($0, isFinished: $1) }
        lastNotice = WaitNotice.read(from: workPath)
        problems.during { schedule.use(try HostPolicyFile.read(in: workPath)) }
        schedule.hosts.restorePauses(lastNotice, at: clock, atMost: configure.retry.maxRetryAfterSeconds)
        programs.connect { [inbox] name, task, state, error in
            inbox.perform { $0.programEnded(name, task.id, state, error) }
        }
        self.programs = programs
        self.ownership = ownership
        self.schedule = schedule
        self.book = book
        self.reporter = reporter
        self.limits = limits
        self.sync = sync
        self.destinations = destinations
        self.transport = transport
        self.control = control
        inbox.connect(self)
        callbacks.connect(inbox.engine)
        if FollowerLock.isHeld(workPath) { reporter.openChanges() }
        guard let deliveries else { return }
        reporter.onState = { [unowned deliveries] in deliveries.apply($0) }
        deliveries.adopt { [inbox] in inbox.perform { $0.deliveriesChanged() } }
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

    /// The configuration in force.
    package var currentConfigure: Configure { schedule.configure }

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
        if configure.isPaused {
            for entry in schedule.running.values {
                entry.run?.restart("pause", "the queue was paused: another attempt begins when it is resumed")
            }
        }
        limitsChanged()
    }

    private func limitsChanged() {
        for (host, count) in schedule.hosts.excess { schedule.yieldLanes(of: host, count) }
        limits.setTotal(others: true)
        startNext()
    }

    /// Reads the policies of hosts that another process has written. An unreadable file leaves them as they are.
    private func readPolicies() {
        guard let policies = try? HostPolicyFile.read(in: workPath), policies != schedule.storedPolicies else { return }
        schedule.use(policies)
        limitsChanged()
    }

    /// Returns problems with reading or repair since the last call, at most 1,000 texts.
    package func takeProblems() -> [DownloadError] { problems.take() }

    // MARK: Closing

    /// Stops all runs, keeps their bytes, writes every record and releases the work path. Every caller returns after that,
    /// except a middleware that a run waits for (`MiddlewareCall`). If only middlewares are waited for during `closingPatience`
    /// seconds, all callers return.
    package func close() async {
        beginClosing()
        guard !ownership.isClosed, !isInChain else { return }
        await withCheckedContinuation { whenClosed.append($0) }
    }

    /// Sets what is done when this engine has written its last record and still owns the work path.
    package func beforeRelease(_ work: @escaping @Sendable () async -> Void) { lastWork = work }

    func beginClosing() {
        guard !ownership.isClosing else { return }
        deliveries?.leaves(true)
        ownership.beginClosing()
        hasClosed.withLock { $0 = true }
        thread.joinWhenReleased()
        schedule.onDeadline = nil
        limitClosing()
        Task { await finishClosing() }
    }

    /// Seconds for which callers of `close()` wait for a middleware.
    private static let closingPatience: Int64 = 60

    /// A middleware may wait for `close()` in a detached task, which the engine cannot tell from any other caller. That
    /// caller returns in the end, and with it the middleware; then the closing is completed.
    private func limitClosing() {
        executor.setDeadline(clock.now + Self.closingPatience * 1_000_000_000) { [weak self] in
            self?.assumeIsolated { engine in
                guard !engine.ownership.isClosed else { return }
                if engine.schedule.running.values.contains(where: { $0.run?.isInMiddleware == true }) {
                    engine.releaseClosers()
                } else {
                    engine.limitClosing()
                }
            }
        }
    }

    /// Seconds for which closing waits for programs of the download stage.
    private static let programPatience: Duration = .seconds(30)

    /// Gives programs of the download stage one more second if the process has to end soon. Then they are killed, and the
    /// changes that they have not received are dropped.
    package nonisolated func hurry() {
        let lines = chains.download.ordered.compactMap { ($0 as? ProgramMiddleware)?.line }
        guard !lines.isEmpty else { return }
        Task.detached {
            try? await Task.sleep(for: .seconds(1))
            lines.forEach { $0.stop() }
        }
    }

    /// Programs receive every change of state, including the last ones before the end of a command.
    private func finishPrograms() async {
        let lines = chains.download.ordered.compactMap { ($0 as? ProgramMiddleware)?.line }
        guard !lines.isEmpty else { return }
        await callbacks.drained()
        await withTaskGroup(of: Void.self) { group in
            for line in lines { group.addTask { await line.finish(patience: Self.programPatience) } }
        }
        // What they reported is on its way to this thread.
        await withCheckedContinuation { continuation in executor.run { continuation.resume() } }
    }

    /// A program was told of a change of state.
    private func programEnded(_ name: String, _ id: TaskID, _ state: DownloadState, _ error: DownloadError?) {
        guard !ownership.isClosed, let entry = try? book.find(id) else { return }
        entry.noteDecision(of: name, error?.message ?? HistoryLine.told + state.rawValue, at: clock.date)
        if let error { problems.append(error) }
        book.write(entry)
    }

    private func releaseClosers() {
        whenClosed.forEach { $0.resume() }
        whenClosed = []
    }

    private func finishClosing() async {
        let runs = schedule.running.values.compactMap(\.run)
        for run in runs { run.signalStop(.keepingBytes) }
        runs.forEach { $0.releaseWaiters() }
        for run in runs { await run.ended() }
        await ownership.idle()
        await finishPrograms()
        let files = sync.takeLast()
        if !files.isEmpty { await synchronize(files) }
        for entry in book.tasks.values where entry.isDirty { book.write(entry) }
        barrels.saveAll()
        transport.shutdown()
        deliveries?.close()
        writeWaits()
        reporter.finish()
        reporter.changes.end()
        programs.close()
        book.close()
        // All records are written, and this process still holds the lock.
        await lastWork?()
        ownership.close()
        background.takeAll().forEach { $0.call() }
        releaseClosers()
    }

    /// True if the caller is a middleware of this engine that a run waits for.
    var isInChain: Bool { control.isInChain }

    // MARK: Events

    /// Handles the events that the transport's thread and the request chains have posted, in order.
    func handleEvents() {
        // Slots released here are filled after all events, with one wake-up of the transport.
        isStarting = true
        destinations.folders.beginTurn()
        for event in inbox.take() {
            guard let run = book[event.id]?.run else { continue }
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
            guard let run = book[request.id]?.run else { continue }
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
        for host in schedule.takeFullHosts() { schedule.yieldLanes(of: host) }
        if schedule.hasTurn { schedule.setDeadline() }
        if schedule.takePauseNews() { writeWaits() }
    }

    /// Performs the asynchronous work of a run, if it asks for any.
    private func perform(_ run: TaskRun) {
        guard let work = run.takeWork() else { return }
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
        if due.sweep { problems.during { try post.mailbox.sweep(now: clock.date) } }
        if due.tick { tick() }
        if due.report { reporter.report() }
        if due.growth { for entry in schedule.running.values { entry.run?.measureGrowth() } }
        for id in due.expired { control.expire(id) }
        for id in due.woken { wake(id) }
        startNext()
        schedule.setDeadline()
    }

    /// Queues a task whose retry has become due.
    private func wake(_ id: TaskID) {
        guard let entry = book[id], entry.record.state == .idle else { return }
        entry.record.stopWaiting()
        schedule.enqueue(entry, host: book.site(of: entry.nextURL))
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
        readPolicies()
        for host in schedule.hosts.awaited { schedule.yieldLanes(of: host) }
        schedule.descriptors.relax(now: clock.now)
        for entry in schedule.running.values { entry.run?.tick() }
        synchronizeDue()
        book.unloadIdle()
        for entry in schedule.running.values where entry.isDirty { book.write(entry) }
        barrels.saveAll()
        writeWaits()
        callHandlers()
    }

    /// Writes the reasons for waiting and the speeds if they have changed. Other processes show them, and the next engine honours
    /// the pauses.
    func writeWaits() {
        guard ownership.mayWrite else { return }
        var notice = schedule.notice(isClosing: ownership.isClosing)
        if !ownership.isClosing { notice.rates = rates }
        guard notice != lastNotice else { return }
        lastNotice = notice
        // Only other processes read this file, so a full disk must not stop downloads.
        try? notice.write(in: workPath)
    }

    /// The speeds of the running tasks to which bytes arrive; nil if there are none.
    private var rates: [String: Int64]? {
        var rates: [String: Int64] = [:]
        for entry in schedule.running.values {
            guard let rate = entry.run?.movingRate else { continue }
            rates[entry.id.hex] = rate
        }
        return rates.isEmpty ? nil : rates
    }

    /// Syncs finished files in the background. A closing engine waits for it, so that no finished file is open when
    /// the work path is released.
    private func synchronizeDue() {
        let files = sync.takeDue()
        guard !files.isEmpty, (try? ownership.beginOperation()) != nil else { return }
        Task {
            await synchronize(files)
            ownership.endOperation()
        }
    }

    private func synchronize(_ files: [SyncBacklog.File]) async {
        let synced = await withCheckedContinuation { continuation in
            diskWork.async { continuation.resume(returning: SyncService.synchronize(files)) }
        }
        synced.forEach { sync.noteSynced($0) }
        files.forEach { sync.release($0) }
    }
}
