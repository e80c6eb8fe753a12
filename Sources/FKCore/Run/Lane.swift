import FKMiddleware

/// One connection of an attempt and the byte range it fills. Confined to the engine.
///
/// ```text
/// claims a place -> request chain -> request -> head is a 206 -> owns a range -> next range … -> done
/// ```
///
/// A further connection first only *claims* a place in a range that another lane fills. Its range becomes real, in the
/// record and for the other lane, once the server has answered with the bytes asked for: a server that refuses ranges
/// costs nothing.
final class Lane {
    /// Bytes of the part file that a mirror is asked for, too.
    struct HeldPiece {
        var start: Int64
        var held: [UInt8]
    }

    let number: Int
    /// Index of the range it fills, once it has one.
    var index: Int?
    /// The mirror it fetches from; nil for the attempt's own URL.
    var mirror: String?
    /// Set while it only learns whether the mirror has the same file.
    var trial: HeldPiece?
    /// Its connection; nil for the lane that uses the one of the task's slot.
    var permit: HostPermit?
    /// Where the range will begin that it has asked for and not got yet.
    var claim: Int64?
    var operation: (any TransportOperation)?
    var receiver: RangeReceiver?
    /// The request chain at work.
    var chain: Task<Void, Never>?
    /// How often the same range was asked for in another way.
    var asksAgain = 0
    /// What was known when the last request was made.
    var known = ResumeRules.Known()
    /// What the last request asked for.
    var lastAsk = RangeAsk()
    /// What the next one asks for, where the server's answer to the last one demands another way.
    var nextAsk: RangeAsk?
    /// What its last request wished for (`TransportRequest.prefersHTTP1`).
    var prefersHTTP1 = false
    /// Ended by the engine: another lane does its work, or one more will.
    var isUnwanted = false
    /// Position at the last tick, and for how many ticks no byte has come.
    var watch = LaneWatch()

    init(number: Int) { self.number = number }

    /// The host that its own permit is for.
    var permitHost: String? {
        switch permit {
        case .some(let permit): permit.host
        case nil: nil
        }
    }

    func cancel() {
        operation?.cancel()
        chain?.cancel()
    }
}

/// Notices a connection through which nothing comes while it should: the rest of its range is then asked for anew.
struct LaneWatch: Sendable {
    /// A connection may be silent for so many ticks (seconds).
    static let patience = 3
    private var position: Int64 = -1
    private(set) var silentTicks = 0

    /// Call once a second with the lane's position; true when it should be replaced.
    mutating func isStuck(at position: Int64) -> Bool {
        silentTicks = position == self.position ? silentTicks + 1 : 0
        self.position = position
        return silentTicks >= Self.patience
    }
}
