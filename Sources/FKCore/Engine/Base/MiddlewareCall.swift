import FKMiddleware

/// A call of the application's code by an engine. Tasks that the code starts inherit it; detached tasks do not.
///
/// A verb waits until the attempt that it stops has ended, and `close()` until all attempts have ended. If a
/// middleware that the attempt waits for called either one, it would wait for itself. So neither waits inside such a
/// call: the request is accepted, and takes effect when the middleware has returned.
package final class MiddlewareCall: Sendable {
    /// Who waits for the call.
    package enum Kind: Sendable {
        /// A request or response middleware. An attempt waits for it.
        case chain
        /// A callback on the callback queue. Only later callbacks wait for it.
        case callback
    }

    @TaskLocal private static var current: MiddlewareCall?

    private let engine: ObjectIdentifier
    private let kind: Kind
    private let task: TaskID?
    private let isOver = Locked(false)
    private let notes = Locked<[Note]>([])

    /// What a middleware has decided, for the task's history.
    struct Note: Sendable, Hashable {
        var name: String
        var what: String
    }

    private init(_ engine: ObjectIdentifier, _ kind: Kind, _ task: TaskID? = nil) {
        self.engine = engine
        self.kind = kind
        self.task = task
    }

    /// Runs a chain of middlewares of a task as a call of this engine.
    ///
    /// - Returns: the result, and the notes of its middlewares in order.
    static func inChain<Result: Sendable>(
        of engine: ObjectIdentifier, _ task: TaskID, _ body: @Sendable () async -> Result
    ) async -> (Result, [Note]) {
        let call = MiddlewareCall(engine, .chain, task)
        defer { call.end() }
        let result = await $current.withValue(call) { await body() }
        return (result, call.notes.withLock { $0 })
    }

    /// Adds a line to the history of the task whose chain runs. Elsewhere it does nothing.
    package static func record(_ name: String, _ what: String) {
        guard let current, current.kind == .chain else { return }
        current.notes.withLock { $0.append(Note(name: name, what: what)) }
    }

    /// Runs callbacks as a call of this engine.
    static func inCallback(of engine: ObjectIdentifier, _ body: () -> Void) {
        let call = MiddlewareCall(engine, .callback)
        defer { call.end() }
        $current.withValue(call, operation: body)
    }

    /// True inside a call of this engine and kind that has not returned yet.
    package static func isInside(_ engine: ObjectIdentifier, _ kind: Kind) -> Bool {
        running(engine)?.kind == kind
    }

    /// The task whose chain this is, inside a chain of this engine that has not returned yet. To wait for its end here
    /// would be to wait for oneself.
    package static func ownTask(_ engine: ObjectIdentifier) -> TaskID? { running(engine)?.task }

    private static func running(_ engine: ObjectIdentifier) -> MiddlewareCall? {
        guard let current, current.engine == engine, !current.isOver.withLock({ $0 }) else { return nil }
        return current
    }

    private func end() { isOver.withLock { $0 = true } }
}
