import FKMiddleware
import Foundation

/// Builds a response head from header lines as they arrive, and determines how the body that follows is delimited. A
/// value type: each line returns an event.
///
/// It drops interim responses (1xx) and trailer fields. They count towards the limits, because otherwise trailers
/// could continue without end.
///
/// It is strict where leniency would let two readers of one message disagree (RFC 9112 section 11): a bare CR or a
/// NUL, a field line without a colon or with whitespace in its name, and contradicting lengths are violations. It
/// accepts a line that ends with LF alone, as RFC 9112 section 2.2 allows.
package struct HeaderCollector {
    /// The result of a line.
    package enum Event: Equatable {
        /// The head continues.
        case more
        /// An interim response has ended.
        case interim
        /// The final head has ended.
        case head(Head)
        /// The reason why the response cannot be trusted. It completes "The server's response is not valid HTTP: ".
        case violation(String)
    }

    /// The final head of a response.
    package struct Head: Equatable {
        /// The status code, 100 to 999.
        package var status: Int
        /// The HTTP version: `1.0`, `1.1`, `2` or `3`.
        package var version: String
        /// All header fields, in order.
        package var fields: [HeaderField]
        /// How the end of the body is determined.
        package var framing: BodyFraming
    }

    private let maxBytes: Int
    private let maxLines: Int
    private var bytes = 0
    private var lines = 0
    private var status: (code: Int, version: String)?
    private var fields: [HeaderField] = []
    private var isDone = false

    /// Creates a collector for one request.
    ///
    /// - Parameters:
    ///   - maxBytes: the maximum size in bytes of all heads of the request, including interim ones and trailers.
    ///   - maxLines: the maximum number of their lines.
    package init(maxBytes: Int, maxLines: Int) {
        self.maxBytes = maxBytes
        self.maxLines = maxLines
    }

    /// Adds one line, including its line end. An empty line ends a head.
    package mutating func add(line: UnsafeRawBufferPointer) -> Event {
        bytes += line.count
        lines += 1
        if bytes > maxBytes { return .violation("its header is longer than \(maxBytes) bytes") }
        if lines > maxLines { return .violation("its header has more than \(maxLines) lines") }
        if isDone { return .more }
        var count = line.count
        if count > 0, line[count - 1] == 0x0a { count -= 1 }
        if count > 0, line[count - 1] == 0x0d { count -= 1 }
        let line = UnsafeRawBufferPointer(rebasing: line[..<count])
        guard let base = line.baseAddress, count > 0 else { return endOfHead() }
        if memchr(base, 0, count) != nil || memchr(base, 0x0d, count) != nil {
            return .violation("its header holds a NUL or a bare CR")
        }
        if status == nil, line.starts(with: Self.statusPrefix) { return begin(line) }
        guard status != nil else { return .violation("it does not begin with a status line") }
        return addField(line)
    }

    private mutating func begin(_ line: UnsafeRawBufferPointer) -> Event {
        let rest = line[Self.statusPrefix.count...]
        let version = rest.prefix { $0 != 0x20 }
        let words = rest[version.endIndex...].drop { $0 == 0x20 }
        let digits = words.prefix { $0 != 0x20 }
        let code = digits.reduce(0) { $0 * 10 + Int($1) - 0x30 }
        guard !version.isEmpty, digits.count == 3, digits.allSatisfy({ (0x30...0x39).contains($0) }),
            (100...999).contains(code)
        else {
            return .violation("its status line is malformed")
        }
        let text = Self.text(UnsafeRawBufferPointer(rebasing: version))
        status = (code, text.hasSuffix(".0") && text != "1.0" ? String(text.dropLast(2)) : text)
        fields.removeAll(keepingCapacity: true)
        fields.reserveCapacity(16)
        return .more
    }

    private mutating func addField(_ line: UnsafeRawBufferPointer) -> Event {
        if line.first == 0x20 || line.first == 0x09 {
            // obs-fold: a continuation line extends the field's value after a space (RFC 9112 section 5.2).
            guard let last = fields.indices.last else { return .violation("its first field line is a continuation") }
            fields[last].value += " " + Self.text(Self.trimmed(line))
            return .more
        }
        var colon = 0
        while colon < line.count, line[colon].isTokenByte { colon += 1 }
        guard line[colon...].contains(0x3a), line[0] != 0x3a else { return .violation("a field line has no name") }
        guard line[colon] == 0x3a else { return .violation("a field name has an invalid character") }
        let name = UnsafeRawBufferPointer(rebasing: line[..<colon])
        let value = Self.trimmed(UnsafeRawBufferPointer(rebasing: line[(colon + 1)...]))
        let fieldName = Self.text(name)
        let isLocation = fieldName.caseInsensitiveEquals("Location")
        fields.append(.init(fieldName, isLocation ? Self.reference(value) : Self.text(value)))
        return .more
    }

    private mutating func endOfHead() -> Event {
        guard let status else { return .violation("it does not begin with a status line") }
        if status.code == 101 { return .violation("it switches protocols, which was not requested") }
        if status.code < 200 {
            self.status = nil
            return .interim
        }
        isDone = true
        switch BodyFraming.determine(status: status.code, version: status.version, fields: &fields) {
        case .failure(let violation): return .violation(violation.reason)
        case .success(let framing):
            return .head(Head(status: status.code, version: status.version, fields: fields, framing: framing))
        }
    }

    private static let statusPrefix = Array("HTTP/".utf8)

    private static func trimmed(_ bytes: UnsafeRawBufferPointer) -> UnsafeRawBufferPointer {
        var start = 0
        var end = bytes.count
        while start < end, bytes[start] == 0x20 || bytes[start] == 0x09 { start += 1 }
        while end > start, bytes[end - 1] == 0x20 || bytes[end - 1] == 0x09 { end -= 1 }
        return UnsafeRawBufferPointer(rebasing: bytes[start..<end])
    }

    /// URLs are bytes: bytes that are not UTF-8 are percent-encoded one by one, so that the server receives them
    /// unchanged.
    private static func reference(_ bytes: UnsafeRawBufferPointer) -> String {
        if let text = String(validating: bytes, as: UTF8.self) { return text }
        var encoded: [UInt8] = []
        for byte in bytes {
            if byte < 0x80 { encoded.append(byte) } else { encoded.appendPercentEncoded(byte) }
        }
        return String(decoding: encoded, as: UTF8.self)
    }

    /// The text as UTF-8 if the bytes are valid, else as Latin-1 (RFC 9110 section 5.5 leaves such bytes opaque).
    private static func text(_ bytes: UnsafeRawBufferPointer) -> String {
        if isASCII(bytes) { return String(decoding: bytes, as: UTF8.self) }
        return String(validating: bytes, as: UTF8.self) ?? String(decoding: bytes.map(UInt16.init), as: UTF16.self)
    }

    /// Eight bytes at a time.
    private static func isASCII(_ bytes: UnsafeRawBufferPointer) -> Bool {
        var union: UInt64 = 0
        var index = 0
        while index &+ 8 <= bytes.count {
            union |= bytes.loadUnaligned(fromByteOffset: index, as: UInt64.self)
            index &+= 8
        }
        while index < bytes.count {
            union |= UInt64(bytes[index])
            index &+= 1
        }
        return union & 0x8080_8080_8080_8080 == 0
    }
}
