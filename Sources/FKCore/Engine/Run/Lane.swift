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

    /// A request, from the choice of its range to the end of its response.
    struct Request {
        /// How its bytes come; nil before the first request.
        var fetcher: (any Fetcher)?
        var operation: (any TransportOperation)?
        /// Masks its secrets; nil before the first request.
        var echo: EchoMasking?
        var ask = RangeAsk()
        /// The facts that it was made with.
        var known = ResumeRules.Known()
        /// `Pieces.reopens` when it was made.
        var reopens = 0
        /// In nanoseconds of the monotonic clock.
        var sent: Int64 = 0
        var prefersHTTP1 = false
        /// True until the head of the answer, or the end without one.
        var isUnanswered = false
    }

    /// What happens between the head of a response and its body: the head stage of the middlewares, and making room.
    struct HeadStage {
        var isRunning = false
        /// True if the response has ended meanwhile.
        var responseHasEnded = false
    }

    /// A request that waits for its turn (`Schedule.acquireTurn`).
    struct HeldRequest {
        let prepared: PreparedRequest
        let whenCancelled: () -> Void
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
    /// Its connection; nil if it uses the connection of the task's slot.
    var permit: HostPermit?
    /// The start of the range that it has requested and not received yet.
    var claim: Int64?
    /// The last one.
    var request = Request()
    /// The range of the next request, if the last answer requires another form; nil otherwise.
    var nextAsk: RangeAsk?
    /// The number of times that the same range was requested in another way.
    var asksAgain = 0
    var held: HeldRequest?
    /// The running request chain or head stage.
    var chain: Task<Void, Never>?
    var headStage = HeadStage()
    var receiver: RangeReceiver?
    /// The number of ticks (seconds) for which it has waited for a reader.
    var heldTicks = 0
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
        request.operation?.cancel()
        chain?.cancel()
        held.take()?.whenCancelled()
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
