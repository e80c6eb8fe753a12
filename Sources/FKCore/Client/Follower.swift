import FKEngine
import FKMiddleware
import Foundation

/// Follows the tasks that another process runs, and reports them to the listeners and waits of this process.
///
/// Changes of state come from the owner's journal (`ChangeReader`), progress from the info files. If changes may be missing, it
/// compares the info files with its last reports. Confined to `SharedEngine`.
final class Follower {
    let reader: StoreReader
    let observers: Observers
    private var changes: ChangeReader
    /// Changes are missing since the last comparison with the info files.
    private var hasGap = false
    private var speeds = FollowedSpeeds()
    /// The tasks of each target that listeners follow, with the last reported states.
    private var followed: [Observers.Target: [TaskID: Heard]] = [:]
    private var barrels: [FollowedBarrel] = []
    private var asked = AskedBarrels()
    private var active = ActiveTasks()
    /// True while the owner is stopped or hung: nothing has a speed then.
    var isOwnerSilent = false
    /// The open tasks of the work path; nil before the first wait for their end.
    private var open: OpenTasks?
    /// True while open tasks have to be counted and could not be listed.
    private var countsOpen = false

    /// What listeners have heard of a task.
    private struct Heard {
        var state: DownloadState
        var order: ChangeOrder

        init(_ info: DownloadInfo) { (state, order) = (info.state, info.order) }
    }

    init(_ workPath: WorkPath, observers: Observers = Observers()) {
        self.observers = observers
        reader = StoreReader(workPath)
        changes = ChangeReader(workPath)
    }

    // MARK: Reading

    /// The existing tasks among these ids, in their order.
    private func present(_ ids: some Sequence<TaskID>) -> [DownloadInfo] {
        reader.records(ids).map { measured($0) }.filter { !active.isTrashed($0) }
    }

    /// A task that began a moment ago may still be queued in its info file.
    private func measured(_ record: TaskRecord) -> DownloadInfo {
        var info = DownloadInfo(record)
        if info.state == .idle, active.attempts[info.id] != nil {
            info.state = .action
            info.waiting = nil
            info.order = info.order.later(than: active.order(of: info.id))
        }
        info = speeds.measured(info)
        if isOwnerSilent { info.bytesPerSecond = 0 }
        return info
    }

    // MARK: Looking

    /// Nothing runs: what the owner had in memory is gone with it.
    func ownerIsGone() { active.forgetRunning() }

    /// Reads and reports the changes since the last call.
    ///
    /// - Parameter withProgress: true reports the progress of running tasks as well.
    func look(withProgress: Bool) {
        let news = changes.read()
        if news.hasGap { active.forgetRunning() }
        for change in news.changes { absorb(change) }
        if news.hasGap || hasGap {
            fillGap(after: news.changes)
        } else if !changes.isConnected {
            for info in differences(isGap: false) { absorb(info) }
        }
        refreshBarrels()
        if withProgress { reportProgress() }
        reportBarrels(isPolled: withProgress)
        for target in followed.keys {
            endInfoSequences(target)
            endAttemptSequences(target)
        }
        listenersChanged()
        if open?.isEmpty == true { observers.waits.endDrained() }
        if open?.hasDrained() == true { observers.queueDrained() }
    }

    private func absorb(_ change: JournalChange) {
        switch change {
        case .state(var info, let order):
            info.order = order
            absorb(speeds.latest(info))
        case .attempt(let info, let url):
            active.absorb(info)
            observers.tell(info, url: url)
        }
    }

    private func absorb(_ info: DownloadInfo) {
        guard active.absorb(info) else { return }
        open?.absorb(info)
        var isOld = false
        for target in [Observers.Target.url(info.url), .id(info.id)] {
            // The info file was read after this change, and said more.
            if let heard = followed[target]?[info.id], info.order.isBefore(heard.order) { isOld = true }
            if !isOld { followed[target]?[info.id] = Heard(info) }
        }
        if !isOld { observers.tell(info.id, url: info.url, info) }
        observers.tell(info)
        for index in barrels.indices { barrels[index].absorb(info) }
        if info.state.isSettled { observers.waits.settled(info.id) }
    }

    /// Compares the info files with the last reports, because the journal may miss changes.
    ///
    /// The journal decides about the tasks that it names, because their info files may be newer than the journal. So the
    /// journal is read again after the info files.
    private func fillGap(after known: [JournalChange]) {
        let differing = differences(isGap: true)
        let later = changes.read()
        hasGap = later.hasGap
        let named = Set((known + later.changes).map(\.id))
        for info in differing where !named.contains(info.id) { absorb(info) }
        for change in later.changes { absorb(change) }
    }

    /// The tasks whose info files differ from the last reports.
    ///
    /// - Parameter isGap: true also reports new tasks of followed URLs, and counts barrels and open tasks again.
    private func differences(isGap: Bool) -> [DownloadInfo] {
        if isGap {
            observers.tellMissed()
            if open != nil || countsOpen { countOpen() }
            barrels = barrels.compactMap { barrel in
                var barrel = barrel
                guard (try? barrel.update(reader)) != nil else { return nil }
                return barrel
            }
        }
        var differing: [DownloadInfo] = []
        for (target, states) in followed {
            let infos: [DownloadInfo] =
                if isGap, case .url(let url) = target, let records = try? reader.records(url: url) {
                    records.map { measured($0) }
                } else {
                    self.present(states.keys)
                }
            let present = Dictionary(infos.map { ($0.id, $0) }) { first, _ in first }
            for info in infos where states[info.id]?.state != info.state { differing.append(info) }
            for (id, heard) in states where present[id] == nil && heard.state != .unknown {
                differing.append(DownloadInfo(id: id, url: target.url ?? "", state: .unknown))
            }
            active.record(infos)
        }
        for barrel in barrels {
            for info in present(barrel.running) where info.state != .action { differing.append(info) }
        }
        let waited = observers.waits.ids
        if !waited.isEmpty {
            let present = Dictionary(self.present(waited).map { ($0.id, $0) }) { first, _ in first }
            for id in waited where present[id]?.state.isSettled ?? true { observers.waits.settled(id) }
        }
        return differing
    }

    private func reportProgress() {
        var listened: Set<TaskID> = []
        for states in followed.values { for (id, heard) in states where heard.state == .action { listened.insert(id) } }
        for barrel in barrels { listened.formUnion(barrel.running) }
        for record in reader.records(listened) {
            let info = measured(record)
            guard info.state == .action else { continue }
            observers.tell(info.id, url: info.url, info)
            if !observers.attempts.isEmpty {
                let url = active.attempts[info.id] ?? record.nextURL.masked
                observers.tell(
                    AttemptInfo(
                        id: info.id, url: url, number: info.attempts, phase: .progressed(info.count),
                        kept: info.count.received), url: info.url)
            }
            for index in barrels.indices { barrels[index].absorb(info) }
        }
    }

    // MARK: Barrels

    private func refreshBarrels() {
        for index in barrels.indices.reversed() {
            do {
                try barrels[index].refresh(reader)
            } catch {
                observers.removeBarrel(barrels.remove(at: index).name)
            }
        }
    }

    /// The sum as it is, without a speed while the owner is stopped or hung.
    private func still(_ info: BarrelInfo) -> BarrelInfo {
        guard isOwnerSilent else { return info }
        var info = info
        info.bytesPerSecond = 0
        return info
    }

    private func reportBarrels(isPolled: Bool) {
        for index in barrels.indices {
            let info = still(barrels[index].info())
            observers.tell(info, isPolled: isPolled)
            if info.isOver { endBarrelSequences(info.name) }
        }
    }

    // MARK: Following

    /// Counts the open tasks. If they cannot be listed, the next look counts them.
    private func countOpen() {
        guard let ids = try? openIDs() else {
            (countsOpen, hasGap) = (true, true)
            return
        }
        countsOpen = false
        if open == nil { open = OpenTasks(ids) } else { open?.count(ids) }
    }

    /// Ends all listeners and waits.
    func finish() { observers.finish() }

    // MARK: Waiting

    /// The tasks among these that have not settled.
    func unsettled(_ ids: [TaskID]) -> [TaskID] {
        var open: [TaskID] = []
        reader.readAll(ids, problem: { _ in }) { _, record in
            let info = measured(record)
            if !info.state.isSettled, !active.isTrashed(info) { open.append(info.id) }
        }
        return open
    }

    /// Waits for these tasks; nil waits until no task of the work path can run.
    func wait(for ids: [TaskID]?, _ number: UInt64, _ continuation: CheckedContinuation<Void, Never>) {
        observers.waits.add(ids, number, continuation)
        guard ids == nil else { return }
        // The last task may have settled since the caller looked. Then the next look ends the wait.
        countOpen()
    }

    func endWait(_ number: UInt64) { observers.waits.end(number) }
}

extension Follower: ChangeFeed {
    func follow(_ target: Observers.Target) -> DownloadInfo? {
        let infos = (try? infos(target.selector)) ?? []
        followed[target, default: [:]].merge(infos.map { ($0.id, Heard($0)) }) { $1 }
        return infos.first
    }

    func follow(barrel name: String) throws -> BarrelInfo {
        var barrel = try FollowedBarrel(name, reader)
        let info = barrel.info()
        barrels.removeAll { $0.name.isExactly(name) }
        barrels.append(barrel)
        return info
    }

    func followQueue() { if open == nil { countOpen() } }

    func endInfoSequences(_ target: Observers.Target) {
        if followed[target]?.values.allSatisfy(\.state.isOver) == true { observers.endInfoSequences(target) }
    }

    func endAttemptSequences(_ target: Observers.Target) {
        guard let states = followed[target],
            states.allSatisfy({ $0.value.state.isOver && active.attempts[$0.key] == nil })
        else { return }
        observers.endAttemptSequences(target, keepsAwaiting: states.isEmpty)
    }

    func endBarrelSequences(_ name: String) { observers.endSequences(ofBarrel: name) }

    /// What nobody listens to is no longer read.
    func listenersChanged() {
        for target in followed.keys where !observers.follows(target) { followed[target] = nil }
        barrels.removeAll { barrel in !observers.barrels.contains { $0.name.isExactly(barrel.name) } }
    }

    func infos(_ selector: TaskSelector) throws -> [DownloadInfo] {
        let infos = try reader.records(matching: selector).map { measured($0) }
        active.record(infos)
        return infos
    }

    /// These tasks are known from now on, if they run or wait for their next attempt.
    func infos(_ ids: [TaskID]) -> [DownloadInfo] {
        let infos = present(ids)
        active.record(infos)
        return infos
    }

    func records(_ query: RecordQuery) throws -> RecordPage {
        try RecordReader(workPath: URL(fileURLWithPath: reader.workPath.root, isDirectory: true)).records(query)
    }

    func openIDs() throws -> TaskIDTable {
        var open = TaskIDTable()
        reader.readAll(try reader.allTaskIDs(), problem: { _ in }) { _, record in
            if !record.state.isSettled { open.insert(record.id) }
        }
        return open
    }

    func waitingInfos() throws -> [DownloadInfo] {
        try reader.records { $0.state == .idle }
            .sorted { ($1.task.priority, $0.number) < ($0.task.priority, $1.number) }.map { DownloadInfo($0) }
    }

    func runningInOrder() throws -> [DownloadInfo] {
        active.record(try reader.records { $0.state == .action }.map { DownloadInfo($0) })
        return runningInfos()
    }

    func runningInfos() -> [DownloadInfo] { present(active.running).filter { $0.state == .action } }

    func retryingInfos(_ limit: Int) -> [DownloadInfo] {
        present(active.retrying.prefix(limit)).filter { $0.state == .idle && $0.error != nil }
    }

    func barrelInfo(_ name: String) throws -> BarrelInfo { still(try asked.info(name, known: barrels, reader)) }

    func barrelNames() throws -> [String] { try reader.barrelNames() }

    func barrelURLs(_ name: String) throws -> [String] { try reader.barrel(name).members.map(\.url) }
}
