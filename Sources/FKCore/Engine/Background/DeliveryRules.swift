import FKMiddleware
import Foundation

/// A piece that a `FileTransport` has fetched, with its response.
package struct Delivery: Sendable, Hashable {
    /// The request that it answers.
    package var key: PieceKey
    /// The head of the response, of any status.
    package var head: ResponseHead
    /// The length of the file in bytes.
    package var length: Int64

    package init(key: PieceKey, head: ResponseHead, length: Int64) {
        self.key = key
        self.head = head
        self.length = length
    }

    /// The range that `Content-Range` announces; nil for any other response than 206.
    var range: Range<Int64>? {
        guard head.status == 206, let answer = head["Content-Range"].flatMap(ContentRange.init),
            answer.unit == "bytes"
        else { return nil }
        return answer.range.map { $0.first..<$0.end }
    }

    /// The number of bytes that the head announces; nil if it announces none.
    package var announced: Int64? {
        if let range { return range.upperBound - range.lowerBound }
        return (try? ContentLength.parse(head)) ?? nil
    }

    /// The head without the first bytes, as a server would have sent it for the rest.
    package func head(without skip: Int64) -> ResponseHead {
        guard skip > 0, let range else { return head }
        var head = head
        let total = self.head["Content-Range"].flatMap(ContentRange.init)?.total.map(String.init) ?? "*"
        for index in head.fields.indices {
            let name = head.fields[index].name
            if name.caseInsensitiveEquals("Content-Range") {
                head.fields[index].value = "bytes \(range.lowerBound + skip)-\(range.upperBound - 1)/\(total)"
            } else if name.caseInsensitiveEquals("Content-Length") {
                head.fields[index].value = String(range.upperBound - range.lowerBound - skip)
            }
        }
        return head
    }
}

/// A range that an attempt needs.
package struct DeliveryAsk: Sendable, Hashable {
    /// The piece that is requested if none has the range.
    package var key: PieceKey
    /// The value of `If-Range`; nil without one.
    package var ifRange: String?
    /// Pieces behind it, which are requested with it.
    package var ahead: [PieceKey] = []

    package init(key: PieceKey, ifRange: String? = nil, ahead: [PieceKey] = []) {
        self.key = key
        self.ifRange = ifRange
        self.ahead = ahead
    }
}

/// Decides about delivered pieces. What a head means for the bytes is decided by `ResumeRules`, as for any response.
package enum DeliveryRules {
    /// The number of pieces that are requested beyond the one that is needed.
    package static let ahead = 3

    // MARK: Arrival

    /// What happens to the file of a piece, while it still exists.
    package enum Arrival: Sendable, Hashable {
        /// It is moved to the work path.
        case keep
        /// It is of no use.
        case discard
        /// The piece counts as failed.
        case fail
    }

    /// Decides about a file that has arrived.
    ///
    /// | task has an info file | piece is kept already | file | |
    /// | --- | --- | --- | --- |
    /// | no | any | any | discard |
    /// | yes | yes | any | discard: it was delivered twice |
    /// | yes | no | missing | fail |
    /// | yes | no | there | keep |
    package static func arrival(isKnown: Bool, isKept: Bool, exists: Bool) -> Arrival {
        !isKnown || isKept ? .discard : exists ? .keep : .fail
    }

    // MARK: The record

    /// What a piece is to its task.
    package enum Fate: Sendable, Hashable {
        /// An attempt takes it.
        case expected
        /// It is kept until the user resumes the task. A request in flight is ended.
        case rests
        /// It is of no use.
        case unwanted
    }

    /// Decides about a piece by the record of its task. It changes no state: a delivery never resumes a task.
    ///
    /// | the record | |
    /// | --- | --- |
    /// | none, or of another generation | unwanted |
    /// | complete, cancelled | unwanted |
    /// | has all bytes of the range | unwanted |
    /// | suspended, failed | rests |
    /// | otherwise | expected |
    package static func fate(of key: PieceKey, for record: TaskRecord?) -> Fate {
        guard let record, record.number == key.generation else { return .unwanted }
        switch record.state {
        case .complete, .cancel, .unknown: return .unwanted
        case .suspend, .error: return has(key, record) ? .unwanted : .rests
        case .idle, .action: return has(key, record) ? .unwanted : .expected
        }
    }

    private static func has(_ key: PieceKey, _ record: TaskRecord) -> Bool {
        guard let end = key.end.map({ min($0, record.expected ?? $0) }) else { return false }
        var position = key.start
        for range in record.ranges.sorted(by: { $0.start < $1.start }) where range.start <= position {
            position = max(position, range.position)
        }
        return position >= end && !record.ranges.isEmpty
    }

    // MARK: An attempt

    /// Whether a piece has the bytes that an attempt needs.
    package enum Match: Sendable, Hashable {
        /// It answers the request, without its first bytes.
        case answers(skip: Int64)
        /// It may answer a later request.
        case other
        /// It answers none.
        case stale
    }

    /// Compares a kept piece with a request of the same task.
    ///
    /// | the piece | |
    /// | --- | --- |
    /// | another generation, URL or header fields | stale |
    /// | the same request | answers, whatever its status is |
    /// | another status, and another `If-Range` | stale |
    /// | 206 under another validator than that of `If-Range` | stale |
    /// | 206 whose range has the first byte, under the same validator or where bytes are compared | answers from there |
    /// | otherwise | other |
    package static func match(_ piece: Delivery, _ ask: DeliveryAsk) -> Match {
        let key = piece.key
        guard key.generation == ask.key.generation, key.form == ask.key.form else { return .stale }
        if key == ask.key { return .answers(skip: 0) }
        guard let range = piece.range else { return key.condition == ask.key.condition ? .other : .stale }
        guard ask.key.end != nil else { return .other }
        if let tag = ask.ifRange {
            let isTag = Validator.isStrongTag(tag)
            guard let own = piece.head.first(isTag ? "ETag" : "Last-Modified") else { return .other }
            guard isTag ? own == tag : Validator.isSameTime(own, tag) else { return .stale }
        }
        return range.contains(ask.key.start) ? .answers(skip: ask.key.start - range.lowerBound) : .other
    }

    /// True if a piece in flight will answer a request.
    package static func answers(_ key: PieceKey, _ ask: DeliveryAsk) -> Bool {
        if key == ask.key { return true }
        guard isOfRequest(key, ask), let end = key.end, ask.key.end != nil else { return false }
        return key.start <= ask.key.start && ask.key.start < end
    }

    /// True if a piece in flight belongs to the same version of the same file. Any other is ended.
    package static func isOfRequest(_ key: PieceKey, _ ask: DeliveryAsk) -> Bool {
        key.generation == ask.key.generation && key.form == ask.key.form && key.condition == ask.key.condition
    }

    /// The pieces behind a request. They need a strong validator, because nothing else proves that answers of different times belong
    /// together, and a known length.
    package static func ahead(of key: PieceKey, ifRange: String?, total: Int64?, size: Int64) -> [PieceKey] {
        guard ifRange != nil, let total, var start = key.end else { return [] }
        var keys: [PieceKey] = []
        while start < total, keys.count < ahead {
            let end = min(start + size, total)
            keys.append(key.with(start: start, end: end))
            start = end
        }
        return keys
    }

    /// The request for at most one piece.
    package static func cap(_ ask: RangeAsk, total: Int64?, size: Int64) -> RangeAsk {
        var ask = ask
        guard ask.usesRange else {
            // Whether the server has ranges shows with the first piece.
            guard ask.again == nil, total.map({ $0 > size }) ?? true else { return ask }
            ask.usesRange = true
            ask.end = size
            return ask
        }
        ask.end = min(ask.end ?? .max, ask.start + size, max(total ?? .max, ask.start + 1))
        return ask
    }

    // MARK: Afterwards

    /// True if a piece is of no use once a response was handled: its bytes are in the part file and the record is on disk, or
    /// the answer was refused. After a stop, and after an error of the local disk, the piece is used again.
    static func isUsed(_ outcome: RangeReceiver.Outcome, localError: DownloadError?) -> Bool {
        guard localError == nil else { return false }
        guard case .ended(.failure(let error)) = outcome else { return true }
        return ![.cancelled, .noSpace, .disk, .destination].contains(error.code)
    }
}
