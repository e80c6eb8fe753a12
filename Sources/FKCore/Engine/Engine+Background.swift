import FKMiddleware

/// The application in the background: events of the system's session, hand-over, and the release of the work path.
///
/// ```text
/// awake -> enterBackground (hand over, stop, write, release the lock) -> asleep -> leaveBackground -> awake
///                                                      ^--- handleEvents: awake until all is handled ---^
/// ```
extension Engine {
    // MARK: Events of the system

    /// Keeps a completion handler until all events of its session are handled and the records are on disk. It is called at once for
    /// a session of somebody else.
    package func handleEvents(_ identifier: String, _ body: @escaping @MainActor @Sendable () -> Void) async {
        let handler = BackgroundEvents.Handler(identifier: identifier, body: body)
        guard let deliveries, deliveries.session.identifier == identifier, !ownership.isClosing else {
            return handler.call()
        }
        background.add(handler, now: clock.now)
        if ownership.isAsleep { wake() }
        callHandlers()
    }

    /// A piece was delivered, or has failed. Records decide what becomes of the pieces that no attempt has asked for.
    func deliveriesChanged() {
        guard let deliveries, !ownership.isClosed else { return }
        background.delivered(deliveries.drainDelivered())
        if ownership.mayWrite {
            var fates: [PieceKey: DeliveryRules.Fate] = [:]
            for key in deliveries.pieces {
                // A record that cannot be read now says nothing.
                guard let entry = try? book.find(key.task) else {
                    if !workPath.hasTask(key.task) { fates[key] = .unwanted }
                    continue
                }
                fates[key] = DeliveryRules.fate(of: key, for: entry.record)
            }
            deliveries.apply(fates)
            startNext()
        }
        callHandlers()
    }

    /// Calls the completion handlers that are due.
    func callHandlers() {
        guard background.isWaiting, !ownership.isClosing else { return }
        let due = background.due(isQuiet: isQuiet, now: clock.now)
        guard !due.isEmpty else { return }
        writeAll()
        guard isInBackground else { return due.forEach { $0.call() } }
        Task {
            await sleep()
            due.forEach { $0.call() }
        }
    }

    /// True if each running task of the session waits for the system.
    private var isQuiet: Bool {
        guard let deliveries else { return true }
        return schedule.running.values.allSatisfy { entry in
            deliveries.isWaiting(entry.id) || !deliveries.isInUse(by: entry)
        }
    }

    private func writeAll() {
        for entry in book.tasks.values where entry.unsaved.isDirty { book.write(entry) }
        barrels.saveAll()
    }

    // MARK: Suspension

    /// Nanoseconds that the hand-over may take. The system suspends an application about five seconds after it asked for it.
    private static let handOver: Int64 = 3_000_000_000

    /// Hands running transfers over to the system, stops, writes all records and releases the work path.
    package func enterBackground() async {
        guard !ownership.isClosing, ownership.mayWrite, !isInBackground else { return }
        isInBackground = true
        if let deliveries {
            let foreground = schedule.running.values.filter { !deliveries.serves($0.record.task.type) }
            deliveries.servesAll(true)
            for entry in foreground {
                entry.taskRun?.restart("background", "the application enters the background: the system continues")
            }
            startNext()
            let end = clock.now + Self.handOver
            while !isQuiet, clock.now < end { try? await Task.sleep(for: .milliseconds(5)) }
        }
        // The application may be back already.
        if isInBackground { await sleep() }
    }

    /// Continues in this process.
    ///
    /// - Throws: `.workPathBusy` if another process has used the work path meanwhile, also when it is called again.
    package func leaveBackground() throws(DownloadError) {
        isInBackground = false
        deliveries?.servesAll(false)
        wake()
        if ownership.wasUsedAsleep { try ownership.checkOpen() }
    }

    private func sleep() async {
        guard !ownership.isClosing, ownership.mayWrite, (try? ownership.beginOperation()) != nil else { return }
        let wasActive = schedule.isActive
        schedule.isActive = false
        deliveries?.leaves(true)
        let runs = schedule.running.values.compactMap(\.taskRun)
        for run in runs { run.signalStop(.keepingBytes) }
        for run in runs { await run.ended() }
        ownership.endOperation()
        guard !ownership.isClosing, isInBackground else { return resumeQueue(wasActive) }
        writeAll()
        notices.write()
        wasActiveAsleep = wasActive
        ownership.sleep(workPath)
    }

    private func wake() {
        guard ownership.isAsleep, !ownership.isClosing else { return }
        ownership.wake(workPath)
        guard ownership.mayWrite else {
            problems.append(
                "Another process has used the work path \(workPath.root) meanwhile: the downloader closes.",
                code: .workPathBusy)
            return beginClosing()
        }
        resumeQueue(wasActiveAsleep)
        deliveriesChanged()
    }

    private func resumeQueue(_ isActive: Bool) {
        deliveries?.leaves(false)
        schedule.isActive = isActive
        onTimer()
    }
}
