import FKMiddleware

/// The completion handlers that the system waits for. Each is returned once: when its session has reported all events and
/// the engine has handled them, or when that takes too long.
struct BackgroundEvents {
    /// A completion handler of the system.
    struct Handler: Sendable {
        let identifier: String
        let body: @MainActor @Sendable () -> Void

        /// Calls it soon.
        func call() { Task { @MainActor [body] in body() } }
    }

    /// The system ends an application that does not answer within about 30 seconds.
    static let patience: Int64 = 20_000_000_000

    private var handlers: [(handler: Handler, since: Int64)] = []
    private var delivered: Set<String> = []

    /// True if a handler waits.
    var isWaiting: Bool { !handlers.isEmpty }

    /// The system has woken the application.
    mutating func add(_ handler: Handler, now: Int64) { handlers.append((handler, now)) }

    /// These sessions have reported all of their events.
    mutating func delivered(_ identifiers: Set<String>) { delivered.formUnion(identifiers) }

    /// The handlers to call now. The records are to be written first.
    ///
    /// - Parameter isQuiet: true if no attempt works on a delivered piece.
    mutating func due(isQuiet: @autoclosure () -> Bool, now: Int64) -> [Handler] {
        let hasAll = handlers.contains { delivered.contains($0.handler.identifier) } && isQuiet()
        let ready = handlers.filter {
            now - $0.since >= Self.patience || hasAll && delivered.contains($0.handler.identifier)
        }.map(\.handler)
        guard !ready.isEmpty else { return [] }
        let identifiers = Set(ready.map(\.identifier))
        handlers.removeAll { identifiers.contains($0.handler.identifier) }
        delivered.subtract(identifiers)
        return ready
    }

    /// All handlers, at the end of the engine.
    mutating func drainAll() -> [Handler] {
        defer { handlers = [] }
        return handlers.map(\.handler)
    }
}
