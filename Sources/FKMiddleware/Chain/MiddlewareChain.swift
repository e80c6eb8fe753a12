import Foundation
import Synchronization

/// An ordered list of middlewares of one kind that can be changed while downloads run.
///
/// Middlewares run by priority, lowest first, and in registration order when priorities are equal (FKDownloader left
/// that order undefined). Their scopes do not change the order. A task that has started on the chain keeps the list of
/// that moment. All members are safe to use from any thread.
public final class MiddlewareChain<Element: Sendable>: Sendable {
    /// Identifies one registration, for `remove(_:)`.
    public struct Registration: Sendable, Hashable {
        fileprivate let number: UInt64
    }

    private struct Entry {
        let priority: Int
        let number: UInt64
        let scope: MiddlewareScope
        let middleware: Element
    }

    private struct State {
        var nextNumber: UInt64 = 0
        /// In the order in which they run.
        var entries: [Entry] = []
        /// The middlewares of `entries`.
        var snapshot: [Element] = []
        /// True when any scope is not `.all`.
        var hasScopes = false

        mutating func refresh() {
            snapshot = entries.map(\.middleware)
            hasScopes = !entries.allSatisfy(\.scope.isAll)
        }
    }

    /// True while nothing is registered, which most downloaders have: their tasks then need neither lock nor list.
    private let isUnused = Atomic<Bool>(true)
    private let state = Locked(State())

    /// Creates an empty chain.
    public init() {}

    /// Adds a middleware. A middleware that is registered twice runs twice, also in one scope and under one name: names
    /// are for messages and identify nothing.
    ///
    /// - Parameters:
    ///   - priority: any number; lower ones run earlier.
    ///   - scope: the tasks it handles; the default is all.
    /// - Returns: the registration, for `remove(_:)`.
    @discardableResult
    public func register(_ middleware: Element, priority: Int, for scope: MiddlewareScope = .all) -> Registration {
        state.withLock { state in
            let entry = Entry(
                priority: priority, number: state.nextNumber, scope: scope, middleware: middleware)
            state.nextNumber += 1
            let index = state.entries.firstIndex { $0.priority > entry.priority } ?? state.entries.endIndex
            state.entries.insert(entry, at: index)
            state.refresh()
            isUnused.store(false, ordering: .releasing)
            return Registration(number: entry.number)
        }
    }

    /// Removes a registration. Returns false if it was removed before.
    @discardableResult
    public func remove(_ registration: Registration) -> Bool {
        state.withLock { state in
            guard let index = state.entries.firstIndex(where: { $0.number == registration.number }) else {
                return false
            }
            state.entries.remove(at: index)
            state.refresh()
            isUnused.store(state.entries.isEmpty, ordering: .releasing)
            return true
        }
    }

    /// The middlewares of all scopes, in the order in which they currently run.
    public var ordered: [Element] { state.withLock { $0.snapshot } }

    /// The middlewares that handle a task, in the order in which they currently run.
    ///
    /// - Parameters:
    ///   - task: made only if a scope has to look at it.
    ///   - url: the URL whose host counts for `.host`; nil, the default, takes the task's own.
    package func ordered(for task: @autoclosure () -> TaskContext, url: String? = nil) -> [Element] {
        if isEmpty { return [] }
        let (snapshot, scoped) = state.withLock { ($0.snapshot, $0.hasScopes ? $0.entries : nil) }
        guard let scoped else { return snapshot }
        // A scope may be a closure of the application, which may use the chain: the lock is not held here.
        let task = task()
        var found: [Element] = []
        for entry in scoped where entry.scope.includes(task, url: url) { found.append(entry.middleware) }
        return found
    }

    /// The middlewares that handle a task, with their hosts. Parameters as for `ordered(for:url:)`.
    package func scoped(for task: @autoclosure () -> TaskContext, url: String) -> [Scoped] {
        if isEmpty { return [] }
        let (snapshot, scoped) = state.withLock { ($0.snapshot, $0.hasScopes ? $0.entries : nil) }
        guard let scoped else { return snapshot.map { Scoped(middleware: $0, host: nil) } }
        let task = task()
        return scoped.filter { $0.scope.includes(task, url: url) }.map {
            Scoped(middleware: $0.middleware, host: $0.scope.host)
        }
    }

    /// A middleware with the host of its scope.
    package struct Scoped: Sendable {
        package let middleware: Element
        /// As `MiddlewareScope.hostName` returns it; nil for a scope that is not about hosts.
        fileprivate let host: String?

        /// Creates a middleware for all hosts.
        package init(_ middleware: Element) { self.init(middleware: middleware, host: nil) }

        fileprivate init(middleware: Element, host: String?) {
            self.middleware = middleware
            self.host = host
        }

        /// True if it handles a request that may have been sent elsewhere by a middleware before it.
        package func handles(_ request: URLRequest) -> Bool {
            guard let host else { return true }
            return MiddlewareScope.hostName(of: request.url?.absoluteString ?? "").isExactly(host)
        }
    }

    /// The middlewares that handle a task, with their priorities. Parameters as for `ordered(for:url:)`.
    func prioritised(for task: TaskContext, url: String?) -> [(priority: Int, middleware: Element)] {
        if isEmpty { return [] }
        return state.withLock(\.entries).filter { $0.scope.includes(task, url: url) }.map {
            ($0.priority, $0.middleware)
        }
    }

    /// True when no registered middleware handles a task. Parameters as for `ordered(for:url:)`.
    package func isEmpty(for task: @autoclosure () -> TaskContext) -> Bool { isEmpty || ordered(for: task()).isEmpty }

    /// True when nothing is registered, in any scope. The engine then skips the stage.
    public var isEmpty: Bool { isUnused.load(ordering: .acquiring) }
}
