import FKMiddleware

/// Which pieces are in flight, which are kept, and which attempts wait. It decides; `Deliveries` performs the actions in
/// order.
///
/// ```text
/// ask -> play | start … -> finished -> play -> settle
///                      \-> failed -> fail
/// ```
///
/// Invariants: a piece is in flight at most once, and never while it is kept; a piece plays for one ask; each ask ends
/// with one play, one failure or its withdrawal.
struct DeliveryBook {
    enum Action: Hashable {
        /// The piece is requested with the request of this ask.
        case start(Int, PieceKey)
        /// Requests are ended.
        case cancel(Set<PieceKey>)
        /// A kept file is removed.
        case discard(PieceKey)
        /// A kept file is the answer to an ask, without its first bytes.
        case play(Int, Delivery, skip: Int64)
        /// The ask has failed.
        case fail(Int, DownloadError)
    }

    private(set) var flying: Set<PieceKey> = []
    private(set) var kept: [PieceKey: Delivery] = [:]
    private var playing: Set<PieceKey> = []
    private var asks: [Int: DeliveryAsk] = [:]
    /// Nothing is requested before the pieces of earlier processes are known.
    private(set) var isAdopted = false

    /// Adds the pieces that were kept by earlier processes. To be called first.
    mutating func restore(_ pieces: [Delivery]) {
        for piece in pieces { kept[piece.key] = piece }
    }

    // MARK: Events

    /// The pieces of earlier processes that are in flight.
    mutating func adopted(_ keys: Set<PieceKey>) -> [Action] {
        flying.formUnion(keys.filter { kept[$0] == nil })
        isAdopted = true
        return asks.keys.sorted().flatMap { serve($0) }
    }

    /// A file was kept.
    mutating func finished(_ piece: Delivery) -> [Action] {
        flying.remove(piece.key)
        kept[piece.key] = piece
        return asks.keys.sorted().flatMap { number in
            asks[number]?.key.task == piece.key.task && isAdopted ? serve(number) : []
        }
    }

    /// A request has failed. An attempt that waits for it fails; a piece behind it is requested when it is needed.
    mutating func failed(_ key: PieceKey, _ error: DownloadError) -> [Action] {
        flying.remove(key)
        let waiting = asks.filter { $0.value.key.task == key.task && DeliveryRules.answers(key, $0.value) }
        for number in waiting.keys { asks[number] = nil }
        return waiting.keys.sorted().map { .fail($0, error) }
    }

    // MARK: Attempts

    /// An attempt needs a range.
    mutating func ask(_ number: Int, _ ask: DeliveryAsk) -> [Action] {
        asks[number] = ask
        return isAdopted ? serve(number) : []
    }

    private mutating func serve(_ number: Int) -> [Action] {
        guard let ask = asks[number] else { return [] }
        var actions: [Action] = []
        var best: (piece: Delivery, skip: Int64)?
        for piece in kept.values where piece.key.task == ask.key.task && !playing.contains(piece.key) {
            switch DeliveryRules.match(piece, ask) {
            case .answers(let skip):
                // The one that was requested for it, else the one with the most bytes.
                if let best, piece.key != ask.key, best.piece.key == ask.key || best.skip <= skip { break }
                best = (piece, skip)
            case .other: break
            case .stale: actions.append(discard(piece.key))
            }
        }
        let strangers = flying.filter { $0.task == ask.key.task && !DeliveryRules.isOfRequest($0, ask) }
        if !strangers.isEmpty {
            flying.subtract(strangers)
            actions.append(.cancel(strangers))
        }
        if let best {
            playing.insert(best.piece.key)
            asks[number] = nil
            // A piece with other bounds is followed by a request that begins elsewhere.
            if best.piece.key == ask.key { actions += start(ask.ahead, for: number) }
            return actions + [.play(number, best.piece, skip: best.skip)]
        }
        if flying.contains(ask.key) { return actions + start(ask.ahead, for: number) }
        guard !flying.contains(where: { $0.task == ask.key.task && DeliveryRules.answers($0, ask) }) else {
            return actions
        }
        return actions + start([ask.key] + ask.ahead, for: number)
    }

    private mutating func start(_ keys: [PieceKey], for number: Int) -> [Action] {
        keys.filter { kept[$0] == nil && flying.insert($0).inserted }.map { .start(number, $0) }
    }

    private mutating func discard(_ key: PieceKey) -> Action {
        kept[key] = nil
        playing.remove(key)
        return .discard(key)
    }

    /// An attempt does not need its range any more.
    ///
    /// - Parameter keepsFlying: false ends the task's requests as well.
    mutating func withdraw(_ number: Int, of task: TaskID, keepsFlying: Bool) -> [Action] {
        asks[number] = nil
        return keepsFlying ? [] : cancel(task)
    }

    /// A piece was played.
    ///
    /// - Parameter isUsed: false keeps it for another attempt (`DeliveryRules.isUsed`).
    mutating func settle(_ key: PieceKey, isUsed: Bool) -> [Action] {
        playing.remove(key)
        return isUsed && kept[key] != nil ? [discard(key)] : []
    }

    // MARK: Tasks

    /// Ends the requests of a task.
    mutating func cancel(_ task: TaskID) -> [Action] {
        let keys = flying.filter { $0.task == task }
        flying.subtract(keys)
        return keys.isEmpty ? [] : [.cancel(keys)]
    }

    /// Applies what the records say about the pieces that do not play.
    mutating func apply(_ fate: (PieceKey) -> DeliveryRules.Fate) -> [Action] {
        var ended: Set<PieceKey> = []
        for key in flying where fate(key) != .expected { ended.insert(key) }
        flying.subtract(ended)
        let unwanted = kept.keys.filter { !playing.contains($0) && fate($0) == .unwanted }
        return (ended.isEmpty ? [] : [.cancel(ended)]) + unwanted.map { discard($0) }
    }

    /// True if a piece of the task is in flight or kept.
    func holds(_ task: TaskID) -> Bool {
        flying.contains { $0.task == task } || kept.keys.contains { $0.task == task }
    }

    /// True if a piece that is in flight or kept has the first byte of a request.
    func hasAnswer(to ask: DeliveryAsk) -> Bool {
        flying.contains { $0.task == ask.key.task && DeliveryRules.answers($0, ask) }
            || kept.values.contains { piece in
                guard piece.key.task == ask.key.task, case .answers = DeliveryRules.match(piece, ask) else {
                    return false
                }
                return true
            }
    }

    /// True if an attempt of the task waits for the system.
    func isWaiting(_ task: TaskID) -> Bool { asks.values.contains { $0.key.task == task } }
}
