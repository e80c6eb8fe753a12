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

    private var handlers: [Handler] = []
    private var delivered: Set<String> = []
    /// When a session had reported all of its events, and had a handler.
    private var since: Int64?

    /// True if a handler waits.
    var isWaiting: Bool { !handlers.isEmpty }

    /// The system has woken the application.
    mutating func add(_ handler: Handler) { handlers.append(handler) }

    /// These sessions have reported all of their events.
    mutating func delivered(_ identifiers: Set<String>) { delivered.formUnion(identifiers) }

    /// The handlers to call now. The records are to be written first.
    ///
    /// - Parameter isQuiet: true if no attempt works on a delivered piece.
    mutating func due(isQuiet: @autoclosure () -> Bool, now: Int64) -> [Handler] {
        let ready = handlers.filter { delivered.contains($0.identifier) }
        guard !ready.isEmpty else { return [] }
        let began = since ?? now
        since = began
        guard isQuiet() || now - began >= Self.patience else { return [] }
        since = nil
        handlers.removeAll { delivered.contains($0.identifier) }
        delivered.subtract(ready.map(\.identifier))
        return ready
    }

    /// All handlers, at the end of the engine.
    mutating func takeAll() -> [Handler] {
        defer { handlers = [] }
        return handlers
    }
}
