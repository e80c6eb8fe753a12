import FKMiddleware

/// Events from the transport's thread for the engine. Events that arrive while the engine is busy are handled
/// together, so a burst of small files costs one wake-up.
final class EngineInbox: Sendable {
    enum Event: Sendable {
        /// The request chain of the lane with this number has ended.
        case request(TaskID, lane: Int, Result<PreparedRequest, DownloadError>, [MiddlewareCall.Note])
        /// The receiver has paused the transfer until the response head is recorded.
        case gate(TaskID, RangeReceiver)
        /// The head stage has ended, with a refusal or without one.
        case judged(TaskID, RangeReceiver, DownloadError?, [MiddlewareCall.Note])
        /// Finished files were deleted to make room for this one.
        case roomMade(TaskID, RangeReceiver, Result<TrimmedFiles, DownloadError>)
        /// The response has ended.
        case end(TaskID, RangeReceiver)
        /// A mirror has answered the trial request of the lane with this number.
        case trial(TaskID, lane: Int, MirrorTrial)
        /// Pieces of the file were compared with a list's digests.
        case pieces(TaskID, PieceResult)

        /// The task that the event belongs to.
        var id: TaskID {
            switch self {
            case .request(let id, _, _, _), .gate(let id, _), .judged(let id, _, _, _), .roomMade(let id, _, _),
                .end(let id, _),
                .trial(let id, _, _), .pieces(let id, _):
                id
            }
        }
    }

    private struct State {
        var events: [Event] = []
        var onEvents: (@Sendable () -> Void)?
        var onTurn: (@Sendable (@escaping @Sendable () -> Void) -> Void)?
        var isClosed = false
    }

    private let state = Locked(State())

    /// Identifies the engine to the middlewares it calls (`MiddlewareCall`).
    var engine: ObjectIdentifier { ObjectIdentifier(self) }

    /// - Parameters:
    ///   - onEvents: makes the engine handle the events, soon.
    ///   - onTurn: runs a closure on the engine's thread, soon, and fills free slots then.
    func connect(
        onEvents: @escaping @Sendable () -> Void, onTurn: @escaping @Sendable (@escaping @Sendable () -> Void) -> Void
    ) {
        state.withLock { ($0.onEvents, $0.onTurn) = (onEvents, onTurn) }
    }

    /// The engine is gone. Later events are dropped: their receivers hold this inbox and their files.
    func close() {
        let events = state.withLock { state in
            defer { state = State(isClosed: true) }
            return state.events
        }
        withExtendedLifetime(events) {}
    }

    /// Adds an event, and wakes the engine if it is the first. Safe from any thread.
    func post(_ event: Event) {
        let wake: (@Sendable () -> Void)? = state.withLock { state in
            guard !state.isClosed else { return nil }
            state.events.append(event)
            return state.events.count == 1 ? state.onEvents : nil
        }
        wake?()
    }

    /// Runs a closure on the engine's thread, if there still is an engine. Safe from any thread.
    func perform(_ body: @escaping @Sendable () -> Void) { state.withLock(\.onTurn)?(body) }

    /// Removes and returns all events, in order.
    func drain() -> [Event] {
        state.withLock { state in
            defer { state.events.removeAll(keepingCapacity: true) }
            return state.events
        }
    }
}
