import FKMiddleware

/// A `Content-Range` field (RFC 9110 section 14.4), read strictly: a value that is wrong in any way is no value.
package struct ContentRange: Sendable, Hashable {
    /// In lower case; only `bytes` means anything to us.
    package var unit: String
    /// Offsets of the first and the last byte; nil in the unsatisfied form `bytes */200`.
    package var range: Span?
    /// Length of the whole; nil when the server does not know it (`bytes 0-99/*`).
    package var total: Int64?

    package struct Span: Sendable, Hashable {
        package var first: Int64
        package var last: Int64
        /// Offset after the last byte.
        package var end: Int64 { last + 1 }
        package var count: Int64 { last - first + 1 }
    }

    /// Nil for other shapes, for numbers beyond `Int64.max - 1`, for last < first, for total <= last, and for `*/*`.
    package init?(_ value: String) {
        let words = value.split(separator: " ", omittingEmptySubsequences: false)
        guard words.count == 2, !words[0].isEmpty, words[0].utf8.allSatisfy(HTTPToken.isTokenByte) else { return nil }
        let parts = words[1].split(separator: "/", omittingEmptySubsequences: false)
        guard parts.count == 2 else { return nil }
        unit = words[0].lowercased()
        if parts[1] != "*" {
            guard let total = ContentLength.number(parts[1]) else { return nil }
            self.total = total
        }
        if parts[0] == "*" {
            guard total != nil else { return nil }
            return
        }
        let ends = parts[0].split(separator: "-", omittingEmptySubsequences: false)
        guard ends.count == 2, let first = ContentLength.number(ends[0]), let last = ContentLength.number(ends[1]),
            first <= last, last < Int64.max, total.map({ $0 > last }) ?? true
        else { return nil }
        range = Span(first: first, last: last)
    }
}

/// The `Content-Length` of a response (RFC 9112 section 6.3).
package enum ContentLength {
    /// The length of the body as announced; nil when it is not, or when a transfer coding makes it void.
    ///
    /// The same number repeated counts once, as RFC 9112 section 6.3 rule 5 allows.
    /// - Throws: `.protocolViolation` when it is negative, not a number, beyond `Int64.max`, or given twice differently.
    package static func parse(_ head: ResponseHead) throws(DownloadError) -> Int64? {
        guard head.values(of: "Transfer-Encoding").isEmpty else { return nil }
        return try parse(head.values(of: "Content-Length"))
    }

    /// The same for the values of all `Content-Length` fields.
    package static func parse(_ values: [String]) throws(DownloadError) -> Int64? {
        // Nearly always it is one number.
        if values.count == 1, let length = number(values[0][...]) { return length }
        var result: Int64?
        for value in values {
            for part in value.split(separator: ",", omittingEmptySubsequences: false) {
                guard let length = number(part.drop { $0 == " " || $0 == "\t" }.trimmingEnd()),
                    result == nil || result == length
                else {
                    throw DownloadError(
                        .protocolViolation,
                        "The server announced no usable length: its Content-Length is not one number from 0 to \(Int64.max)."
                    )
                }
                result = length
            }
        }
        return result
    }

    /// Decimal digits only: no sign, no blanks; nil beyond `Int64.max`.
    static func number(_ text: Substring) -> Int64? {
        guard !text.isEmpty, text.utf8.allSatisfy(\.isASCIIDigit) else { return nil }
        return Int64(text)
    }
}

extension Substring {
    fileprivate func trimmingEnd() -> Substring {
        var rest = self
        while let last = rest.last, last == " " || last == "\t" { rest.removeLast() }
        return rest
    }
}
