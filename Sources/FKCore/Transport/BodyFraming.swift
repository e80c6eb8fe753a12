import FKMiddleware

/// How the end of a message's body is known (RFC 9112 section 6.3).
package enum BodyFraming: Sendable, Equatable {
    /// 204 and 304 have no body, whatever their fields say.
    case noBody
    case length(Int64)
    /// A length beside a Transfer-Encoding field that names no coding. libcurl then reads to the end of the connection, so
    /// the transport counts the bytes and ends the body itself (`BodyMeter`).
    case countedLength(Int64)
    /// A last chunk (HTTP/1.1) or the end of the stream (HTTP/2).
    case delimited
    /// The server closes the connection; nothing tells a complete body from a cut one.
    case untilClose

    package struct Violation: Error, Equatable {
        package var reason: String
    }

    /// Reads the framing fields, refuses contradictions, and removes a Content-Length that Transfer-Encoding overrides
    /// (RFC 9112 section 6.3 rule 3), so that nobody takes it for the length of the body.
    package static func determine(
        status: Int, version: String, fields: inout [ResponseHead.Field]
    ) -> Result<BodyFraming, Violation> {
        let isHTTP1 = version.hasPrefix("1")
        var coding = TransferCoding.none
        if isHTTP1 {
            switch transferCoding(&fields) {
            case .failure(let violation): return .failure(violation)
            case .success(let found): coding = found
            }
        }
        var length: Int64?
        for field in fields where field.name.caseInsensitiveEquals("Content-Length") {
            // A list of equal values is what a merging proxy makes of a repeated field (RFC 9110 section 8.6).
            for part in field.value.split(separator: ",", omittingEmptySubsequences: false) {
                guard let value = ContentLength.number(part.trimmingBlanks) else {
                    return .failure(Violation(reason: "its Content-Length is not a length"))
                }
                guard length == nil || length == value else {
                    return .failure(Violation(reason: "it has contradicting Content-Length fields"))
                }
                length = value
            }
        }
        if coding == .chunked { fields.removeAll { $0.name.caseInsensitiveEquals("Content-Length") } }
        if status == 204 || status == 304 { return .success(.noBody) }
        if coding == .chunked { return .success(.delimited) }
        if let length { return .success(coding == .identity ? .countedLength(length) : .length(length)) }
        return .success(isHTTP1 ? .untilClose : .delimited)
    }

    private enum TransferCoding { case none, identity, chunked }

    /// Whether the body is chunked. Any other coding would be written into the file as it is: a request without `TE`
    /// permits none (RFC 9112 sections 6.1 and 7.4).
    ///
    /// As curl has it: `identity`, which RFC 2616 had, means nothing before `chunked`, and a repeated `chunked` counts once.
    /// Within one field nothing else may follow `chunked`.
    private static func transferCoding(_ fields: inout [ResponseHead.Field]) -> Result<TransferCoding, Violation> {
        let name = "Transfer-Encoding"
        var found = TransferCoding.none
        for field in fields where field.name.caseInsensitiveEquals(name) {
            var isAfterChunked = false
            if found == .none { found = .identity }
            for coding in field.value.split(separator: ",").map({ String($0.trimmingBlanks) }) where !coding.isEmpty {
                if coding.caseInsensitiveEquals("chunked") {
                    found = .chunked
                    isAfterChunked = true
                } else if !coding.caseInsensitiveEquals("identity") {
                    return .failure(
                        Violation(reason: "it has a Transfer-Encoding other than chunked, which nobody asked for"))
                } else if isAfterChunked {
                    return .failure(Violation(reason: "its Transfer-Encoding does not end with chunked"))
                }
            }
        }
        if found == .identity { fields.removeAll { $0.name.caseInsensitiveEquals(name) } }
        return .success(found)
    }
}

/// Counts the bytes of a body, and ends it where the library underneath does not know its end.
struct BodyMeter {
    /// Nil until the head is there.
    var framing: BodyFraming?
    /// Bytes that the handler has taken.
    private(set) var delivered: Int64 = 0

    /// How many of the next bytes belong to the body.
    func share(of count: Int) -> Int {
        guard case .countedLength(let length) = framing else { return count }
        return Int(min(Int64(count), length - delivered))
    }

    mutating func take(_ count: Int) { delivered += Int64(count) }

    /// The body is whole, though the library reads on.
    var endsHere: Bool { framing == .countedLength(delivered) }

    /// The connection ended before the body.
    var isCut: Bool {
        if case .countedLength(let length) = framing { delivered < length } else { false }
    }
}

extension Substring {
    fileprivate var trimmingBlanks: Substring {
        var text = utf8[...]
        while let first = text.first, first == 0x20 || first == 0x09 { text.removeFirst() }
        while let last = text.last, last == 0x20 || last == 0x09 { text.removeLast() }
        return Substring(text)
    }
}
