/// What a client asked a `FaultServer`, and what it got.
package struct FaultRequest: Sendable {
    /// 0 for the first request of the server's life.
    package var index: Int
    /// 0 for the first connection; requests with the same number shared one.
    package var connection: Int
    package var method: String
    /// As it stood in the request line.
    package var target: String
    package var headers: [(name: String, value: String)]
    package var body: [UInt8]
    /// Bytes handed to the system for sending so far, the head included.
    package var bytesSent = 0
    /// How often the system would not take more at once: the client was not reading.
    package var timesBlocked = 0
    package var end: End?

    package enum End: Sendable, Equatable {
        /// Every step was done.
        case completed
        /// The client closed the connection before that.
        case clientClosed
    }

    /// The target without its query.
    package var path: String { String(target.prefix { $0 != "?" }) }

    /// The target's query; empty for none.
    package var query: String { String(target.drop { $0 != "?" }.dropFirst()) }

    /// The values of all fields of that name, compared without case and joined by `, `.
    package subscript(name: String) -> String? {
        let values = headers.filter { $0.name.lowercased() == name.lowercased() }.map(\.value)
        return values.isEmpty ? nil : values.joined(separator: ", ")
    }

    /// The one byte range asked for, made definite against a length: nil without a usable Range field.
    package func range(of length: Int) -> Range<Int>? {
        guard let text = self["Range"], text.hasPrefix("bytes="), !text.contains(",") else { return nil }
        let parts = text.dropFirst(6).split(separator: "-", maxSplits: 1, omittingEmptySubsequences: false)
        guard parts.count == 2 else { return nil }
        if parts[0].isEmpty {
            guard let count = Int(parts[1]), count > 0 else { return nil }
            return max(0, length - count)..<length
        }
        guard let first = Int(parts[0]) else { return nil }
        let last = min(Int(parts[1]) ?? length - 1, length - 1)
        return first <= last ? first..<last + 1 : nil
    }

    /// Reads the head without its empty line.
    init?(head: [UInt8], index: Int, connection: Int) {
        let lines = String(decoding: head, as: UTF8.self).split(separator: "\r\n")
        guard let words = lines.first?.split(separator: " "), words.count == 3 else { return nil }
        method = String(words[0])
        target = String(words[1])
        headers = lines.dropFirst().compactMap { line in
            guard let colon = line.firstIndex(of: ":") else { return nil }
            let value = line[line.index(after: colon)...].drop { $0 == " " }
            return (String(line[..<colon]), String(value))
        }
        self.index = index
        self.connection = connection
        body = []
    }
}
