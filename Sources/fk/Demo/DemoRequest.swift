/// A request as the demo's server parses it.
struct DemoRequest: Sendable, Hashable {
    var method: String
    /// The percent-decoded path without its leading slash.
    var path: String
    /// The header fields; their names are in lower case.
    var headers: [String: String]
    var keepsAlive: Bool

    /// Parses the head of a request, including the empty line; nil if it is malformed.
    init?(_ head: String) {
        let lines = head.split(separator: "\r\n", omittingEmptySubsequences: true)
        guard let first = lines.first else { return nil }
        let parts = first.split(separator: " ")
        guard parts.count == 3, parts[2].hasPrefix("HTTP/1."), parts[1].hasPrefix("/") else { return nil }
        method = String(parts[0])
        guard let path = Self.decode(parts[1].dropFirst().prefix { $0 != "?" }) else { return nil }
        self.path = path
        headers = [:]
        for line in lines.dropFirst() {
            guard let colon = line.firstIndex(of: ":") else { return nil }
            let value = line[line.index(after: colon)...].drop { $0 == " " || $0 == "\t" }
            headers[line[..<colon].lowercased()] = String(value)
        }
        let connection = headers["connection"]?.lowercased() ?? ""
        keepsAlive = parts[2] == "HTTP/1.1" ? connection != "close" : connection == "keep-alive"
    }

    private static func decode(_ text: Substring) -> String? {
        var bytes: [UInt8] = []
        var rest = Array(text.utf8)[...]
        while let byte = rest.popFirst() {
            guard byte == UInt8(ascii: "%") else {
                bytes.append(byte)
                continue
            }
            guard rest.count >= 2, let value = UInt8(String(decoding: rest.prefix(2), as: UTF8.self), radix: 16) else {
                return nil
            }
            bytes.append(value)
            rest = rest.dropFirst(2)
        }
        return String(validating: bytes, as: UTF8.self)
    }
}

/// The response to a request for an existing file.
struct DemoAnswer: Sendable, Hashable {
    var status: Int
    /// The bytes of the file in the body.
    var range: Range<Int64>

    /// Evaluates Range and If-Range (RFC 9110 sections 13.1.5 and 14.2) for one range of bytes. A malformed range is
    /// ignored; a range beyond the end gives 416.
    init(_ request: DemoRequest, _ file: DemoFile) {
        let whole = DemoAnswer(status: 200, range: 0..<file.size)
        guard request.method == "GET", let text = request.headers["range"], text.hasPrefix("bytes=") else {
            self = whole
            return
        }
        if let condition = request.headers["if-range"], condition != file.etag {
            self = whole
            return
        }
        let parts = text.dropFirst(6).split(separator: "-", maxSplits: 1, omittingEmptySubsequences: false)
        guard parts.count == 2, !text.contains(",") else {
            self = whole
            return
        }
        switch (Int64(parts[0]), Int64(parts[1])) {
        case (let first?, _) where first >= file.size: self.init(status: 416, range: 0..<0)
        case (let first?, let last?) where last < first: self = whole
        case (let first?, let last?): self.init(status: 206, range: first..<min(file.size, last + 1))
        case (let first?, nil) where parts[1].isEmpty: self.init(status: 206, range: first..<file.size)
        case (nil, let length?) where parts[0].isEmpty && length > 0 && file.size > 0:
            self.init(status: 206, range: max(0, file.size - length)..<file.size)
        default: self = whole
        }
    }

    private init(status: Int, range: Range<Int64>) {
        self.status = status
        self.range = range
    }
}
