import FKMiddleware

/// Which pieces of a file were compared with the digests of a list, which source has sent which bytes, and from where a wrong
/// piece is fetched again. A value of one attempt.
///
/// ```text
/// missing -> arrived (`due`) -> right
///     ^_________| wrong: `blame`, then `source(for:)`
/// ```
struct PieceLedger {
    /// What follows a wrong piece.
    enum Verdict: Equatable {
        /// It is fetched again.
        case again
        /// It was fetched often enough.
        case givenUp(fetches: Int)
    }

    /// The digests, with their bytes.
    let digests: PieceDigests
    /// The length of the file in bytes.
    let length: Int64
    private var isRight: [Bool]
    /// The number of pieces that were compared and are right.
    private(set) var rightCount = 0
    /// All pieces before this one are right.
    private var firstOpen = 0
    /// How often a wrong piece came from each source, by the number of the piece.
    private var wrong: [Int: [String: Int]] = [:]
    /// The number of wrong pieces from each source.
    private(set) var wrongOf: [String: Int] = [:]
    /// Which source has sent which bytes, oldest first.
    private var origins: [(range: Range<Int64>, source: String)] = []
    /// Increased by everything that makes a comparison in progress worthless.
    private(set) var generation = 0

    /// The maximum number of remembered responses. The oldest are forgotten.
    private static let maxOrigins = 1_024
    /// The number of wrong pieces after which a source is replaced, if there is another one.
    static let patience = 3

    /// Returns nil if a file of this length has another number of pieces.
    init?(_ digests: PieceDigests, length: Int64) {
        guard digests.fit(length) else { return nil }
        self.digests = digests
        self.length = length
        isRight = [Bool](repeating: false, count: digests.count)
    }

    /// True if all pieces are right.
    var isDone: Bool { rightCount == isRight.count }

    /// The bytes of a piece.
    func range(_ index: Int) -> Range<Int64> { digests.range(index, of: length) }

    // MARK: Comparing

    /// The complete pieces that are not compared yet, in order: at least one, and further ones up to `bytes` bytes in all.
    func due(_ ranges: [SavedRange], bytes: Int64) -> [Int] {
        var result: [Int] = []
        var sum: Int64 = 0
        var index = firstOpen
        for held in Self.held(ranges) {
            index = max(index, Int((held.lowerBound + digests.length - 1) / digests.length))
            while index < isRight.count, range(index).upperBound <= held.upperBound {
                if !isRight[index] {
                    let range = range(index)
                    sum += range.upperBound - range.lowerBound
                    guard result.isEmpty || sum <= bytes else { return result }
                    result.append(index)
                }
                index += 1
            }
        }
        return result
    }

    /// The received bytes, joined and in order.
    private static func held(_ ranges: [SavedRange]) -> [Range<Int64>] {
        var held: [Range<Int64>] = []
        for range in ranges.sorted(by: { $0.start < $1.start }) where range.position > range.start {
            if let last = held.last, range.start <= last.upperBound {
                held[held.count - 1] = last.lowerBound..<max(last.upperBound, range.position)
            } else {
                held.append(range.start..<range.position)
            }
        }
        return held
    }

    /// The piece has its digest.
    mutating func pass(_ index: Int) {
        guard !isRight[index] else { return }
        isRight[index] = true
        rightCount += 1
        wrong[index] = nil
        while firstOpen < isRight.count, isRight[firstOpen] { firstOpen += 1 }
    }

    /// The bytes of the file are dropped. Counts of wrong pieces stay, so that a server that always lies comes to an end.
    mutating func restart() {
        isRight = [Bool](repeating: false, count: isRight.count)
        (rightCount, firstOpen) = (0, 0)
        origins = []
        generation += 1
    }

    /// A comparison in progress does not count any more.
    mutating func invalidate() { generation += 1 }

    // MARK: Sources

    /// A response has brought bytes.
    mutating func record(_ range: Range<Int64>, from source: String) {
        guard !range.isEmpty else { return }
        if origins.count >= Self.maxOrigins { origins.removeFirst(Self.maxOrigins / 2) }
        origins.append((range, source))
    }

    /// The sources of a piece's bytes, as far as they are known.
    ///
    /// - Parameter running: the bytes of responses that have not ended.
    func sources(of index: Int, _ running: [(range: Range<Int64>, source: String)]) -> [String] {
        let piece = range(index)
        var found: [String] = []
        for (range, source) in (origins + running).reversed() where range.overlaps(piece) {
            if !found.contains(source) { found.append(source) }
            if range.lowerBound <= piece.lowerBound, range.upperBound >= piece.upperBound { break }
        }
        return found
    }

    /// A piece is wrong.
    ///
    /// - Parameters:
    ///   - sources: those of its bytes.
    ///   - usable: the number of sources that may be asked.
    mutating func blame(_ index: Int, _ sources: [String], usable: Int) -> Verdict {
        generation += 1
        for source in sources.isEmpty ? [""] : sources {
            wrong[index, default: [:]][source, default: 0] += 1
            wrongOf[source, default: 0] += 1
        }
        let fetches = wrong[index]?.values.reduce(0, +) ?? 0
        return fetches >= max(3, 2 * usable) ? .givenUp(fetches: fetches) : .again
    }

    /// True for a piece that is fetched again.
    func isFetchedAgain(_ offset: Int64) -> Bool { wrong[Int(offset / digests.length)] != nil }

    /// The source for another request of a piece: the first of those that have sent it wrong least often.
    func source(for offset: Int64, among sources: [String]) -> String? {
        let wrong = wrong[Int(offset / digests.length)] ?? [:]
        return sources.enumerated()
            .min { (wrong[$0.element, default: 0], $0.offset) < (wrong[$1.element, default: 0], $1.offset) }?.element
    }

    /// A source could not serve a piece.
    mutating func fail(_ offset: Int64, at source: String) {
        wrong[Int(offset / digests.length), default: [:]][source, default: 0] += 1
    }
}

extension PartFile {
    /// Compares pieces with their digests. It blocks, so it must not run on the engine's or transport's thread.
    ///
    /// - Returns: the pieces that differ, in order.
    func wrongPieces(_ indexes: [Int], _ digests: PieceDigests, length: Int64) throws(DownloadError) -> [Int] {
        var wrong: [Int] = []
        let buffer = UnsafeMutableRawBufferPointer.allocate(byteCount: 1 << 20, alignment: 4096)
        defer { buffer.deallocate() }
        for index in indexes {
            let range = digests.range(index, of: length)
            let digester = Digester(digests.algorithm, length: range.upperBound - range.lowerBound)
            var offset = range.lowerBound
            while offset < range.upperBound {
                try checkWanted()
                let wanted = Int(min(Int64(buffer.count), range.upperBound - offset))
                let count = try read(into: UnsafeMutableRawBufferPointer(rebasing: buffer[..<wanted]), at: offset)
                if count == 0 { break }
                digester.update(UnsafeRawBufferPointer(rebasing: buffer[..<count]))
                offset += Int64(count)
            }
            if digester.bytes() != digests[index] { wrong.append(index) }
        }
        return wrong
    }
}
