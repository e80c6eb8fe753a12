import FKMiddleware

/// The end of an engine, and the callers that wait for it. Confined to the engine.
final class Closing {
    /// Seconds for which callers of `close()` wait for a middleware.
    static let patience: Int64 = 60

    private let reporter: Reporter
    private let sync: SyncService
    private let programs: RegisteredPrograms
    private let notices: WaitNotices
    private let deliveries: Deliveries?
    private let transport: any Transport
    private let executor: EngineExecutor
    private var callers: [CheckedContinuation<Void, Never>] = []
    /// Called before the work path is released.
    var lastWork: (@Sendable () async -> Void)?

    private var book: TaskBook { reporter.book }
    private var ownership: Ownership { reporter.book.ownership }

    init(
        _ reporter: Reporter, _ sync: SyncService, _ programs: RegisteredPrograms, _ notices: WaitNotices,
        _ deliveries: Deliveries?, _ transport: any Transport, _ executor: EngineExecutor
    ) {
        self.reporter = reporter
        self.sync = sync
        self.programs = programs
        self.notices = notices
        self.deliveries = deliveries
        self.transport = transport
        self.executor = executor
    }

    /// Stops all runs, writes every record and releases the work path.
    func finish(isolation: isolated (any Actor)? = #isolation) async {
        let runs = reporter.schedule.running.values.compactMap(\.taskRun)
        for run in runs { run.signalStop(.keepingBytes) }
        runs.forEach { $0.releaseWaiters() }
        for run in runs { await run.ended() }
        await ownership.idle()
        await programs.finish(reporter.callbacks, executor)
        await sync.perform(sync.drainLast())
        for entry in book.tasks.values where entry.unsaved.isDirty { book.write(entry) }
        book.barrels.saveAll()
        transport.shutdown()
        deliveries?.close()
        notices.write()
        reporter.finish()
        reporter.changes.end()
        programs.close()
        HostTurns.sweep(book.workPath, now: reporter.clock.now, date: reporter.clock.date)
        book.close()
        // All records are written, and this process still holds the lock.
        await lastWork?()
        ownership.close()
        // A follower may have ended since the journal has.
        ChangeJournal.removeAbandoned(book.workPath)
    }

    /// Returns once the engine has ended, or once only middlewares are waited for and `patience` is over.
    func ended(isolation: isolated (any Actor)? = #isolation) async {
        await withCheckedContinuation { callers.append($0) }
    }

    func releaseCallers() {
        callers.forEach { $0.resume() }
        callers = []
    }

    /// To be called after `patience`. A middleware may wait for `close()` in a detached task, which the engine cannot tell from any
    /// other caller. That caller returns in the end, and with it the middleware; then the closing is completed.
    ///
    /// - Returns: false if it is to be called again.
    func isTimeUp() -> Bool {
        if ownership.isClosed { return true }
        guard reporter.schedule.running.values.contains(where: { $0.taskRun?.isInMiddleware == true }) else {
            return false
        }
        releaseCallers()
        return true
    }
}
