import FKMiddleware
import Foundation

/// Reads the requests of an HTTP/1.1 connection from its bytes (RFC 9112), one after another. A text that two readers could
/// understand differently is refused: chunked bodies, two lengths, folded lines, control characters.
package struct HTTPReader: Sendable {
    /// What the bytes contain next.
    package enum Step: Sendable, Hashable {
        /// More bytes are needed.
        case wait
        /// The head of a request. `body` follows, also if it is empty.
        case head(WebRequest)
        /// The whole body of that request.
        case body([UInt8])
        /// The bytes are no request. The connection is to be closed after an answer with this status.
        case fault(Int)
    }

    package static let maxHead = 16 << 10
    private let maxBody: Int
    private var bytes: [UInt8] = []
    /// The bytes before it are done with.
    private var start = 0
    /// The head does not end before it.
    private var scanned = 0
    /// The length of the body that follows; nil before a head.
    private var remaining: Int?

    package init(maxBody: Int) { self.maxBody = maxBody }

    /// The number of bytes that wait.
    package var count: Int { bytes.count - start }

    /// The number of bytes in memory.
    package var kept: Int { bytes.count }

    package mutating func append(_ new: some Sequence<UInt8>) { bytes += new }

    /// The bytes that wait, for a reader of another protocol.
    package mutating func drainRemaining() -> [UInt8] {
        defer { bytes = [] }
        return Array(bytes[start...])
    }

    /// The next step. After a fault nothing follows.
    package mutating func next() -> Step {
        if let remaining {
            guard count >= remaining else { return .wait }
            let body = Array(bytes[start..<start + remaining])
            self.remaining = nil
            drop(to: start + remaining)
            return .body(body)
        }
        // Empty lines before a request are allowed. They are not kept, because they may never end.
        let first = bytes[start...].firstIndex { $0 != 0x0d && $0 != 0x0a } ?? bytes.count
        if first > start { drop(to: first) }
        guard let end = headEnd() else { return count > Self.maxHead ? .fault(431) : .wait }
        guard end - start <= Self.maxHead else { return .fault(431) }
        let result = Self.head(bytes[start..<end])
        drop(to: end)
        switch result {
        case .failure(let fault): return .fault(fault.status)
        case .success(let request):
            let length = request.contentLength ?? 0
            guard length <= maxBody else { return .fault(413) }
            remaining = length
            return .head(request)
        }
    }

    private mutating func drop(to end: Int) {
        start = end
        scanned = end
        guard start == bytes.count || start > 64 << 10 else { return }
        // An idle connection keeps no memory.
        bytes = Array(bytes[start...])
        start = 0
        scanned = 0
    }

    /// The index behind the empty line that ends a head.
    private mutating func headEnd() -> Int? {
        var index = max(scanned, start)
        while index < bytes.count {
            if bytes[index] == 0x0a {
                let line = index >= start + 1 && bytes[index - 1] == 0x0d ? index - 1 : index
                if line > start, bytes[line - 1] == 0x0a { return index + 1 }
            }
            index += 1
        }
        scanned = index
        return nil
    }

    // MARK: The head

    private struct Fault: Error { var status: Int }

    private static func head(_ bytes: ArraySlice<UInt8>) -> Result<WebRequest, Fault> {
        var lines: [String] = []
        for line in bytes.split(separator: 0x0a, omittingEmptySubsequences: false) {
            let line = line.last == 0x0d ? line.dropLast() : line
            guard line.allSatisfy({ $0 >= 0x20 && $0 != 0x7f || $0 == 0x09 }) else {
                return .failure(Fault(status: 400))
            }
            lines.append(String(decoding: line, as: UTF8.self))
        }
        var request = WebRequest()
        if let status = readLine(lines.first ?? "", into: &request) { return .failure(Fault(status: status)) }
        for line in lines.dropFirst() where !line.isEmpty {
            guard let colon = line.utf8.firstIndex(of: UInt8(ascii: ":")) else { return .failure(Fault(status: 400)) }
            let name = line[..<colon].lowercased()
            let value = line[line.utf8.index(after: colon)...].trimmingCharacters(in: .whitespaces)
            // A name with a space at its end or beginning is a folded or a forged line.
            guard name.isFieldName, isSingle(name, request) else { return .failure(Fault(status: 400)) }
            request.fields[name] = request.fields[name].map { "\($0), \(value)" } ?? value
        }
        if request["transfer-encoding"] != nil { return .failure(Fault(status: 411)) }
        if let text = request["content-length"] {
            guard (1...15).contains(text.utf8.count), text.utf8.allSatisfy({ (0x30...0x39).contains($0) }) else {
                return .failure(Fault(status: 411))
            }
            request.contentLength = Int(text)
        }
        if request.contains("close", in: "connection") { request.isClosing = true }
        return .success(request)
    }

    /// False for a second value of a field that decides about the connection.
    private static func isSingle(_ name: String, _ request: WebRequest) -> Bool {
        !["host", "content-length", "origin", "sec-fetch-site"].contains(name) || request[name] == nil
    }

    /// - Returns: the status of the fault; nil for a good line.
    private static func readLine(_ line: String, into request: inout WebRequest) -> Int? {
        let parts = line.split(separator: " ", omittingEmptySubsequences: false)
        guard parts.count == 3, String(parts[0]).isFieldName,
            parts[1].utf8.allSatisfy({ $0 > 0x20 && $0 < 0x7f })
        else { return 400 }
        guard parts[2] == "HTTP/1.1" || parts[2] == "HTTP/1.0" else { return parts[2].hasPrefix("HTTP/") ? 505 : 400 }
        request.method = String(parts[0])
        request.isClosing = parts[2] == "HTTP/1.0"
        guard parts[1].hasPrefix("/") || parts[1] == "*" && request.method == "OPTIONS" else { return 400 }
        let target = parts[1].split(separator: "?", maxSplits: 1, omittingEmptySubsequences: false)
        request.path = String(target[0])
        request.queryText = target.count > 1 ? String(target[1]) : ""
        return nil
    }
}
