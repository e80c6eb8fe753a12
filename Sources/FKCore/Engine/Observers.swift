import FKMiddleware
import Foundation

/// Who listens to what. Confined to the engine; callbacks run on the engine's callback queue, in order.
struct Observers {
    enum Target: Hashable {
        case url(String)
        case id(TaskID)

        /// - Throws: `.invalidURL` for a URL that is none, `.invalidArgument` for several tasks.
        init(_ selector: TaskSelector) throws {
            switch selector {
            case .url(let url): self = .url(try URLNormalizer.normalize(url))
            case .id(let id): self = .id(id)
            case .barrel, .all:
                throw DownloadError(.invalidArgument, "Info callbacks are for one task: give its URL or id.")
            }
        }
    }

    final class TaskListener {
        let number: UInt64
        let callback: @Sendable (DownloadInfo) -> Void
        var previous: Int64 = 0
        init(number: UInt64, callback: @escaping @Sendable (DownloadInfo) -> Void) {
            self.number = number
            self.callback = callback
        }
    }

    final class BarrelListener {
        let number: UInt64
        let name: String
        let callback: @Sendable (BarrelInfo) -> Void
        var last: BarrelInfo?
        init(number: UInt64, name: String, callback: @escaping @Sendable (BarrelInfo) -> Void) {
            self.number = number
            self.name = name
            self.callback = callback
        }
    }

    final class AttemptListener {
        let number: UInt64
        let target: Target
        let callback: @Sendable (AttemptInfo) -> Void
        /// Received at the last report, by task: a URL may have several.
        var previous: [TaskID: Int64] = [:]
        init(number: UInt64, target: Target, callback: @escaping @Sendable (AttemptInfo) -> Void) {
            self.number = number
            self.target = target
            self.callback = callback
        }
    }

    /// Somebody waits until all of some tasks have settled.
    private final class Settling {
        private var open: Set<TaskID>
        private var continuation: CheckedContinuation<Void, Never>?
        init(_ ids: [TaskID], continuation: CheckedContinuation<Void, Never>) {
            open = Set(ids)
            self.continuation = continuation
        }

        var isOver: Bool { continuation == nil }

        func settled(_ id: TaskID) {
            open.remove(id)
            if open.isEmpty { finish() }
        }

        func finish() {
            continuation?.resume()
            continuation = nil
        }
    }

    private var nextNumber: UInt64 = 0
    private(set) var tasks: [Target: [TaskListener]] = [:]
    private(set) var barrels: [BarrelListener] = []
    private(set) var attempts: [AttemptListener] = []
    private(set) var states: [UInt64: @Sendable (DownloadInfo) -> Void] = [:]
    private var drained: [UInt64: @Sendable () -> Void] = [:]
    private var onFinish: [UInt64: @Sendable () -> Void] = [:]
    private var settling: [Settling] = []
    private var draining: [CheckedContinuation<Void, Never>] = []

    /// Somebody wants the polled callbacks.
    var wantsReports: Bool { !tasks.isEmpty || !barrels.isEmpty || !attempts.isEmpty }

    mutating func number() -> UInt64 {
        nextNumber += 1
        return nextNumber
    }

    // MARK: Registering

    mutating func add(_ listener: TaskListener, for target: Target) {
        tasks[target, default: []].append(listener)
    }

    mutating func add(_ listener: BarrelListener) { barrels.append(listener) }
    mutating func add(_ listener: AttemptListener) { attempts.append(listener) }

    /// Every change of state of every task.
    mutating func addStates(_ callback: @escaping @Sendable (DownloadInfo) -> Void) -> UInt64 {
        let number = number()
        states[number] = callback
        return number
    }

    mutating func addDrained(_ callback: @escaping @Sendable () -> Void) -> UInt64 {
        let number = number()
        drained[number] = callback
        return number
    }

    /// What to call when the listener is removed from this side: by the engine closing, or its task being trashed.
    mutating func addFinish(_ number: UInt64, _ body: @escaping @Sendable () -> Void) { onFinish[number] = body }

    func contains(_ number: UInt64) -> Bool {
        barrels.contains { $0.number == number } || attempts.contains { $0.number == number }
            || tasks.values.contains { $0.contains { $0.number == number } }
    }

    mutating func remove(_ number: UInt64) {
        for (target, listeners) in tasks where listeners.contains(where: { $0.number == number }) {
            let left = listeners.filter { $0.number != number }
            tasks[target] = left.isEmpty ? nil : left
        }
        barrels.removeAll { $0.number == number }
        attempts.removeAll { $0.number == number }
        states[number] = nil
        drained[number] = nil
        onFinish[number] = nil
    }

    /// - Returns: what is to be called once the listeners have heard all that is still on its way to them.
    mutating func removeAll(_ target: Target) -> [@Sendable () -> Void] {
        let numbers =
            (tasks.removeValue(forKey: target) ?? []).map(\.number)
            + attempts.filter { $0.target == target }.map(\.number)
        attempts.removeAll { $0.target == target }
        return numbers.compactMap { onFinish.removeValue(forKey: $0) }
    }

    /// - Returns: as `removeAll`.
    mutating func removeBarrel(_ name: String) -> [@Sendable () -> Void] {
        let ends = barrels.filter { $0.name.isExactly(name) }.compactMap { onFinish.removeValue(forKey: $0.number) }
        barrels.removeAll { $0.name.isExactly(name) }
        return ends
    }

    mutating func finish() {
        onFinish.values.forEach { $0() }
        settling.forEach { $0.finish() }
        draining.forEach { $0.resume() }
        self = Observers()
    }

    // MARK: Waiting

    /// - Parameter ids: at least one.
    mutating func waitForSettling(of ids: [TaskID], _ continuation: CheckedContinuation<Void, Never>) {
        settling.append(Settling(ids, continuation: continuation))
    }

    mutating func settled(_ id: TaskID) {
        guard !settling.isEmpty else { return }
        settling.forEach { $0.settled(id) }
        settling.removeAll(where: \.isOver)
    }

    mutating func waitForDrain(_ continuation: CheckedContinuation<Void, Never>) { draining.append(continuation) }

    /// Returns the callbacks to run.
    mutating func queueDrained() -> [@Sendable () -> Void] {
        draining.forEach { $0.resume() }
        draining = []
        return Array(drained.values)
    }
}
