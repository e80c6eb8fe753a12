import FKMiddleware
import Foundation

/// The listeners of a downloader. `Reporter` calls them for an engine of this process, `Follower` for an engine of
/// another process. A listener keeps its number when this process takes the engine over.
///
/// A listener never blocks: it fills a sequence, ends a wait, or passes a value to a queue (`CallbackTarget`).
package final class Observers: @unchecked Sendable {
    // Sendable because it is confined to the thread of one `EngineExecutor`.

    /// The task or the tasks of one URL.
    package enum Target: Hashable {
        case url(String)
        case id(TaskID)

        /// The URL; nil for an id.
        package var url: String? { if case .url(let url) = self { url } else { nil } }

        package var selector: TaskSelector {
            switch self {
            case .url(let url): .url(url)
            case .id(let id): .id(id)
            }
        }

        /// - Throws: `.invalidURL` for an invalid URL, `.invalidArgument` for several tasks.
        package init(_ selector: TaskSelector) throws {
            switch selector.kind {
            case .url(let url): self = .url(try url.normalizedURL())
            case .id(let id): self = .id(id)
            case .barrel, .state, .all:
                throw DownloadError(.invalidArgument, "A callback or sequence follows one task: give its URL or id.")
            }
        }
    }

    /// The last counts that a listener received for each task; a URL may have several tasks. All values called
    /// "previous" come from here.
    package struct ReportedBytes {
        private var received: [TaskID: Int64] = [:]

        /// The count before, 0 the first time. `count` is stored in its place.
        package mutating func previous(of id: TaskID, now count: Int64) -> Int64 {
            received.updateValue(count, forKey: id) ?? 0
        }

        package mutating func forget(_ id: TaskID) { received[id] = nil }
    }

    package final class TaskListener {
        package let number: UInt64
        package let callback: @Sendable (DownloadInfo) -> Void
        private var reported = ReportedBytes()
        package init(number: UInt64, callback: @escaping @Sendable (DownloadInfo) -> Void) {
            self.number = number
            self.callback = callback
        }

        package func tell(_ info: DownloadInfo) {
            var info = info
            info.count.previousReceived = reported.previous(of: info.id, now: info.count.received)
            if info.state == .unknown { reported.forget(info.id) }
            callback(info)
        }
    }

    package final class BarrelListener {
        package let number: UInt64
        package let name: String
        private let callback: @Sendable (BarrelInfo) -> Void
        private var last: BarrelInfo?
        /// True if members have joined or left since the last report: the next one comes even if its sum is equal, because others may
        /// make it up.
        package var hasOtherMembers = false
        package init(number: UInt64, name: String, callback: @escaping @Sendable (BarrelInfo) -> Void) {
            self.number = number
            self.name = name
            self.callback = callback
        }

        /// True if the last report had new bytes. One more report follows then, so that `received - previousReceived` becomes 0.
        package var isMoving: Bool { last.map { $0.count.received != $0.count.previousReceived } ?? false }

        /// Reports a sum, unless it is equal to the last one and of the same members. A lower rate is another sum, because a listener would otherwise keep
        /// the rate of the last bytes.
        ///
        /// - Parameter isPolled: true also reports the last sum again if it had new bytes; the default is false.
        package func tell(_ info: BarrelInfo, isPolled: Bool = false) {
            var same = info
            same.count.previousReceived = last?.count.previousReceived ?? 0
            guard same != last || hasOtherMembers || isPolled && isMoving else { return }
            hasOtherMembers = false
            var info = info
            info.count.previousReceived = last?.count.received ?? 0
            last = info
            callback(info)
        }
    }

    package final class AttemptListener {
        package let number: UInt64
        package let target: Target
        private let callback: @Sendable (AttemptInfo) -> Void
        private var reported = ReportedBytes()
        /// True until the target has a task: a sequence that waits for it does not end.
        fileprivate var isAwaiting: Bool
        package init(
            number: UInt64, target: Target, isAwaiting: Bool, callback: @escaping @Sendable (AttemptInfo) -> Void
        ) {
            self.number = number
            self.target = target
            self.isAwaiting = isAwaiting
            self.callback = callback
        }

        package func tell(_ info: AttemptInfo) {
            isAwaiting = false
            var info = info
            let previous = reported.previous(of: info.id, now: info.kept)
            if case .progressed(var count) = info.phase {
                count.previousReceived = previous
                info.phase = .progressed(count)
            }
            callback(info)
        }
    }

    package init() {}

    private var nextNumber: UInt64 = 0
    package private(set) var tasks: [Target: [TaskListener]] = [:]
    /// The targets of the listeners in `tasks`, by their numbers.
    private var targets: [UInt64: Target] = [:]
    package private(set) var barrels: [BarrelListener] = []
    package private(set) var attempts: [AttemptListener] = []
    package private(set) var states: [UInt64: @Sendable (DownloadInfo) -> Void] = [:]
    /// Closures to call where changes of any task may have been missed.
    private var whenMissed: [UInt64: @Sendable () -> Void] = [:]
    private var owners: [UInt64: @Sendable (EngineOwner) -> Void] = [:]
    private var drained: [UInt64: @Sendable () -> Void] = [:]
    private var trims: [UInt64: @Sendable (TrimmedFiles) -> Void] = [:]
    /// The closures that end sequences, by the numbers of their listeners.
    private var ends: [UInt64: @Sendable () -> Void] = [:]
    /// The callers that wait.
    package var waits = TaskWaits()

    /// True if there are listeners for the polled callbacks.
    var wantsReports: Bool { !tasks.isEmpty || !barrels.isEmpty || !attempts.isEmpty }

    package func number() -> UInt64 {
        nextNumber += 1
        return nextNumber
    }

    /// True if nobody listens or waits.
    package var isEmpty: Bool {
        !wantsReports && states.isEmpty && owners.isEmpty && drained.isEmpty && trims.isEmpty && ends.isEmpty
            && waits.count == 0
    }

    /// True if a listener follows this target.
    package func follows(_ target: Target) -> Bool {
        tasks[target] != nil || attempts.contains { $0.target == target }
    }

    // MARK: Telling

    /// Tells the listeners of a task. Returns true if there are any.
    @discardableResult
    package func tell(_ id: TaskID, url: String, _ info: @autoclosure () -> DownloadInfo) -> Bool {
        guard !tasks.isEmpty else { return false }
        let listeners = (tasks[.url(url)] ?? []) + (tasks[.id(id)] ?? [])
        guard !listeners.isEmpty else { return false }
        let info = info()
        for listener in listeners { listener.tell(info) }
        return true
    }

    /// Tells the listeners of a task's attempts.
    package func tell(_ info: AttemptInfo, url: String) {
        for listener in attempts where listener.target == .id(info.id) || listener.target == .url(url) {
            listener.tell(info)
        }
    }

    /// Tells the listeners of a barrel.
    package func tell(_ info: BarrelInfo, isPolled: Bool = false) {
        for listener in barrels where listener.name.isExactly(info.name) { listener.tell(info, isPolled: isPolled) }
    }

    // MARK: Registering

    /// - Parameter end: for a sequence; called once after the last value, when no other can follow.
    package func add(_ listener: TaskListener, for target: Target, end: (@Sendable () -> Void)?) {
        tasks[target, default: []].append(listener)
        targets[listener.number] = target
        ends[listener.number] = end
    }

    package func add(_ listener: BarrelListener, end: (@Sendable () -> Void)?) {
        barrels.append(listener)
        ends[listener.number] = end
    }

    package func add(_ listener: AttemptListener, end: (@Sendable () -> Void)?) {
        attempts.append(listener)
        ends[listener.number] = end
    }

    /// Adds a listener for every change of state of every task.
    ///
    /// - Parameter missed: called where changes may have been missed, because another process runs the tasks.
    package func addStates(
        _ number: UInt64, missed: @escaping @Sendable () -> Void, _ callback: @escaping @Sendable (DownloadInfo) -> Void
    ) {
        states[number] = callback
        whenMissed[number] = missed
    }

    /// Tells the listeners for every change of state that changes may have been missed.
    package func tellMissed() { for missed in whenMissed.values { missed() } }

    /// Adds a listener for the owner of the work path.
    package func addOwner(
        _ number: UInt64, end: (@Sendable () -> Void)?, _ callback: @escaping @Sendable (EngineOwner) -> Void
    ) {
        owners[number] = callback
        ends[number] = end
    }

    /// Tells the listeners for the owner.
    package func tell(_ owner: EngineOwner) { for listener in owners.values { listener(owner) } }

    /// Removes the listeners for the owner.
    package func removeOwners() { end(Array(owners.keys)) }

    /// Tells the listeners for every change of state.
    package func tell(_ change: DownloadInfo) { for listener in states.values { listener(change) } }

    /// Adds a listener for each time that no task can run any more.
    package func addDrained(_ number: UInt64, _ callback: @escaping @Sendable () -> Void) {
        drained[number] = callback
    }

    /// Adds a listener for what is deleted to make room.
    package func addTrims(_ number: UInt64, _ callback: @escaping @Sendable (TrimmedFiles) -> Void) {
        trims[number] = callback
    }

    /// Tells the listeners what was deleted.
    package func tell(_ files: TrimmedFiles) { trims.values.forEach { $0(files) } }

    package func remove(_ number: UInt64) {
        if let target = targets.removeValue(forKey: number) {
            tasks[target]?.removeAll { $0.number == number }
            if tasks[target]?.isEmpty == true { tasks[target] = nil }
        }
        barrels.removeAll { $0.number == number }
        attempts.removeAll { $0.number == number }
        states[number] = nil
        whenMissed[number] = nil
        owners[number] = nil
        drained[number] = nil
        trims[number] = nil
        ends[number] = nil
    }

    /// Removes the listeners of a target, and ends their sequences.
    package func removeAll(_ target: Target) {
        end((tasks[target] ?? []).map(\.number) + attempts.filter { $0.target == target }.map(\.number))
    }

    /// Removes the listeners of a barrel, and ends their sequences.
    package func removeBarrel(_ name: String) { end(barrels.filter { $0.name.isExactly(name) }.map(\.number)) }

    // MARK: Sequences

    /// True if a sequence of infos listens.
    func hasInfoSequences(_ target: Target) -> Bool {
        !ends.isEmpty && tasks[target]?.contains { ends[$0.number] != nil } ?? false
    }

    /// True if a sequence of attempts listens.
    func hasAttemptSequences(_ target: Target) -> Bool {
        !ends.isEmpty && attempts.contains { $0.target == target && ends[$0.number] != nil }
    }

    /// True if a sequence of a barrel's sums listens.
    func hasSequences(ofBarrel name: String) -> Bool {
        !ends.isEmpty && barrels.contains { $0.name.isExactly(name) && ends[$0.number] != nil }
    }

    /// Ends the sequences of infos; callbacks stay.
    package func endInfoSequences(_ target: Target) {
        end((tasks[target] ?? []).map(\.number).filter { ends[$0] != nil })
    }

    /// Ends the sequences of attempts; callbacks stay.
    ///
    /// - Parameter keepsAwaiting: true keeps those that wait for a task of the target.
    package func endAttemptSequences(_ target: Target, keepsAwaiting: Bool) {
        let over = attempts.filter { listener in
            listener.target == target && ends[listener.number] != nil && !(keepsAwaiting && listener.isAwaiting)
        }
        end(over.map(\.number))
    }

    /// Ends the sequences of a barrel's sums; callbacks stay.
    package func endSequences(ofBarrel name: String) {
        end(barrels.filter { $0.name.isExactly(name) && ends[$0.number] != nil }.map(\.number))
    }

    /// Removes listeners, and ends those that are sequences.
    private func end(_ numbers: [UInt64]) {
        let bodies = numbers.compactMap { ends[$0] }
        numbers.forEach { remove($0) }
        bodies.forEach { $0() }
    }

    // MARK: Everything

    /// Removes all listeners, and ends all sequences and waits.
    package func finish() {
        waits.endAll()
        let bodies = ends.values
        (tasks, targets, barrels, attempts) = ([:], [:], [], [])
        (states, whenMissed, owners, drained, trims, ends) = ([:], [:], [:], [:], [:], [:])
        bodies.forEach { $0() }
    }

    /// Ends the waits for an empty queue, and tells the listeners for it.
    package func queueDrained() {
        waits.endDrained()
        drained.values.forEach { $0() }
    }
}
