import FKMiddleware

/// One connection of an attempt and the byte range it fills. Confined to the engine.
///
/// ```text
/// claims a place -> request chain -> request -> head is a 206 -> owns a range -> next range … -> done
/// ```
///
/// A further connection first only *claims* a position in a range that another lane fills. The range is divided, in the
/// record and for the other lane, once the server has answered with the requested bytes. So a server that refuses ranges
/// costs nothing.
final class Lane {
    /// Bytes of the part file, which are also requested from a mirror.
    struct HeldPiece {
        var start: Int64
        var held: [UInt8]
    }

    let number: Int
    /// The index of the range that it fills; nil before it has one.
    var index: Int?
    /// The mirror that it uses; nil for the attempt's own URL.
    var mirror: String?
    /// Set while it only checks whether the mirror has the same file.
    var trial: HeldPiece?
    /// The start of the wrong piece that it fetches again; nil for any other lane.
    var repairs: Int64?
    /// `Pieces.reopens` at its last request.
    var reopens = 0
    /// Its connection; nil if it uses the connection of the task's slot.
    var permit: HostPermit?
    /// The start of the range that it has requested and not received yet.
    var claim: Int64?
    /// How its bytes come since its last request; nil before the first one.
    var fetcher: (any Fetcher)?
    var operation: (any TransportOperation)?
    /// Masks the secrets of its last request; nil before the first one.
    var echo: EchoMasking?
    /// The request that waits for its turn (`Schedule.acquireTurn`).
    var held: PreparedRequest?
    /// Ends a lane that waits for its turn.
    var whenCancelled: (() -> Void)?
    /// True from a request to the head of its answer, or its end.
    var isUnanswered = false
    var receiver: RangeReceiver?
    /// The running request chain or head stage.
    var chain: Task<Void, Never>?
    /// True while the head stage runs.
    var isAccepting = false
    /// True if the response has ended meanwhile.
    var hasEnded = false
    /// The number of times that the same range was requested in another way.
    var asksAgain = 0
    /// The facts known at the last request.
    var known = ResumeRules.Known()
    /// The range of the last request.
    var lastAsk = RangeAsk()
    /// The range of the next request, if the last answer requires another form; nil otherwise.
    var nextAsk: RangeAsk?
    /// The time of the last request, in nanoseconds of the monotonic clock.
    var asked: Int64 = 0
    /// The number of ticks (seconds) for which it has waited for a reader.
    var heldTicks = 0
    /// `TransportRequest.prefersHTTP1` of the last request.
    var prefersHTTP1 = false
    /// True once the engine ends it. Another lane takes over its work.
    var isUnwanted = false
    /// The position at the last tick, and the number of ticks without a byte.
    var watch = LaneWatch()

    init(number: Int) { self.number = number }

    /// The host of its own permit; nil without one.
    var permitHost: String? {
        switch permit {
        case .some(let permit): permit.host
        case nil: nil
        }
    }

    func cancel() {
        operation?.cancel()
        chain?.cancel()
        if held.take() != nil { whenCancelled?() }
    }
}

/// Detects a connection that delivers nothing. The rest of its range is then requested again.
struct LaneWatch: Sendable {
    /// The maximum number of silent ticks (seconds).
    static let patience = 3
    private var position: Int64 = -1
    private(set) var silentTicks = 0

    /// Returns true if the lane must be replaced. To be called once a second with the lane's position.
    mutating func isStuck(at position: Int64) -> Bool {
        silentTicks = position == self.position ? silentTicks + 1 : 0
        self.position = position
        return silentTicks >= Self.patience
    }
}
