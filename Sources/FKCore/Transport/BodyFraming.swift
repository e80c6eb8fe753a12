import FKMiddleware

/// How the end of a message body is determined (RFC 9112 section 6.3).
package enum BodyFraming: Sendable, Equatable {
    /// No body: 204 and 304 never have one, whatever their fields say.
    case noBody
    /// A Content-Length of this many bytes.
    case length(Int64)
    /// A Content-Length next to a Transfer-Encoding field without a coding. libcurl then reads until the connection
    /// closes, so the transport counts the bytes and ends the body itself (`BodyMeter`).
    case countedLength(Int64)
    /// The last chunk (HTTP/1.1) or the end of the stream (HTTP/2).
    case delimited
    /// The server closes the connection. A truncated body then looks like a complete one.
    case untilClose

    /// The framing fields contradict each other or are malformed.
    package struct Violation: Error, Equatable {
        /// The reason, for a message.
        package var reason: String
    }

    /// Reads the framing fields and refuses contradictions. It removes a Content-Length that Transfer-Encoding
    /// overrides (RFC 9112 section 6.3 rule 3), so that no later code takes it for the length of the body.
    package static func determine(
        status: Int, version: String, fields: inout [HeaderField]
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
        // By indices: a copy of each field would cost more than the comparison.
        for index in fields.indices where fields[index].name.caseInsensitiveEquals("Content-Length") {
            let field = fields[index]
            if length == nil, let value = ContentLength.number(field.value[...]) {
                length = value
                continue
            }
            // A proxy that merges repeated fields makes a list of equal values (RFC 9110 section 8.6).
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

    /// The transfer coding. Only `chunked` is accepted: any other coding would be written into the file as it is, and
    /// a request without `TE` permits none (RFC 9112 sections 6.1 and 7.4).
    ///
    /// The rules are curl's: `identity` (RFC 2616) is ignored before `chunked`, and a repeated `chunked` counts once.
    /// Within one field, nothing else may follow `chunked`.
    private static func transferCoding(_ fields: inout [HeaderField]) -> Result<TransferCoding, Violation> {
        let name = "Transfer-Encoding"
        var found = TransferCoding.none
        for index in fields.indices where fields[index].name.caseInsensitiveEquals(name) {
            let field = fields[index]
            var isAfterChunked = false
            if found == .none { found = .identity }
            for coding in field.value.split(separator: ",").map({ String($0.trimmingBlanks) }) where !coding.isEmpty {
                if coding.caseInsensitiveEquals("chunked") {
                    found = .chunked
                    isAfterChunked = true
                } else if !coding.caseInsensitiveEquals("identity") {
                    return .failure(
                        Violation(reason: "it has a Transfer-Encoding other than chunked, which was not requested"))
                } else if isAfterChunked {
                    return .failure(Violation(reason: "its Transfer-Encoding does not end with chunked"))
                }
            }
        }
        if found == .identity { fields.removeAll { $0.name.caseInsensitiveEquals(name) } }
        return .success(found)
    }
}

/// Counts the bytes of a body, and ends it if the underlying library does not know its end.
struct BodyMeter {
    /// nil until the head has arrived.
    var framing: BodyFraming?
    /// The bytes that the handler has consumed.
    private(set) var delivered: Int64 = 0

    /// How many of the next bytes belong to the body.
    func share(of count: Int) -> Int {
        guard case .countedLength(let length) = framing else { return count }
        return Int(min(Int64(count), length - delivered))
    }

    mutating func record(_ count: Int) { delivered += Int64(count) }

    /// True if the body is complete although the library continues to read.
    var endsHere: Bool { framing == .countedLength(delivered) }

    /// True if the connection ended before the body.
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
