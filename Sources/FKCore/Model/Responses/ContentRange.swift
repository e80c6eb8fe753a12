import FKMiddleware

/// A `Content-Range` field (RFC 9110 section 14.4), parsed strictly: a malformed value is ignored.
package struct ContentRange: Sendable, Hashable {
    /// The unit in lower case. Only `bytes` is supported.
    package var unit: String
    /// The first and last byte; nil in the unsatisfied form `bytes */200`.
    package var range: Span?
    /// The total length; nil if the server does not know it (`bytes 0-99/*`).
    package var total: Int64?

    /// A range of bytes.
    package struct Span: Sendable, Hashable {
        /// The offset of the first byte.
        package var first: Int64
        /// The offset of the last byte.
        package var last: Int64
        /// The offset after the last byte.
        package var end: Int64 { last + 1 }
        package var count: Int64 { last - first + 1 }
    }

    /// Parses a value. nil for other forms, numbers above `Int64.max - 1`, last < first, total <= last, and `*/*`.
    package init?(_ value: String) {
        let words = value.split(separator: " ", omittingEmptySubsequences: false)
        guard words.count == 2, !words[0].isEmpty, words[0].utf8.allSatisfy(\.isTokenByte) else { return nil }
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

extension ResponseHead {
    /// True if the body is a part of the file by its `Content-Range`. A 206 is one unless its range is the whole file. The field
    /// has no meaning in a 200 (RFC 9110 section 14.4), but servers that send it mean a part, unless the range starts at byte 0
    /// and its total is the length of the body.
    package var isPart: Bool {
        guard let answer = self["Content-Range"].flatMap(ContentRange.init), answer.unit == "bytes",
            let range = answer.range
        else { return status == 206 }
        let length = (try? ContentLength.parse(self)) ?? range.count
        if status == 206, answer.total == nil || range.count != length { return true }
        return range.first > 0 || answer.total ?? length != length
    }
}

/// The `Content-Length` field of a response (RFC 9112 section 6.3).
package enum ContentLength {
    /// The announced length of the body; nil if there is none, or if a transfer coding overrides it.
    ///
    /// The same number repeated counts once, as RFC 9112 section 6.3 rule 5 allows.
    ///
    /// - Throws: `.protocolViolation` for a negative value, text that is not a number, a value above `Int64.max`, or
    ///   two different values.
    package static func parse(_ head: ResponseHead) throws(DownloadError) -> Int64? {
        guard head.values(of: "Transfer-Encoding").isEmpty else { return nil }
        return try parse(head.values(of: "Content-Length"))
    }

    /// The length that the values of all `Content-Length` fields announce; nil if there are none.
    ///
    /// - Throws: same as `parse` of a head.
    package static func parse(_ values: [String]) throws(DownloadError) -> Int64? {
        // Usually there is a single number.
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

    /// Decimal digits only, without sign or whitespace; nil above `Int64.max`.
    package static func number(_ text: Substring) -> Int64? {
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
