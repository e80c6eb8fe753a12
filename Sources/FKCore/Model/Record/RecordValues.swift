import FKMiddleware
import Foundation

extension DownloadState: RecordValue {}
extension DownloadType: RecordValue {}
extension DownloadError.Code: RecordValue {}
extension Waiting.Reason: RecordValue {}

extension TaskID: RecordValue {
    func write(to text: inout JSONText) { text.value(self) }

    static func read(_ scanner: inout JSONScanner) throws -> Self {
        guard let id = TaskID(hexDigits: try scanner.plainText()) else { throw JSONScanner.Unexpected() }
        return id
    }
}

extension Array: RecordValue where Element: RecordValue {
    func write(to text: inout JSONText) throws {
        text.beginArray()
        for element in self { try element.write(to: &text) }
        text.endArray()
    }

    static func read(_ scanner: inout JSONScanner) throws -> Self {
        var elements: [Element] = []
        try scanner.elements { elements.append(try Element.read(&$0)) }
        return elements
    }
}

/// The pairs of an application.
extension Dictionary: RecordValue where Key == String, Value == String {
    func write(to text: inout JSONText) throws {
        // Foundation's encoder has other escapes than `JSONText`, and its bytes stay what they were.
        guard allSatisfy({ JSONText.isPlain($0.key) && JSONText.isPlain($0.value) }) else {
            return text.raw(try StoreJSON.encode(self))
        }
        text.beginObject()
        for (key, value) in sorted(by: { $0.key.utf8.lexicographicallyPrecedes($1.key.utf8) }) {
            text.key(key)
            text.value(value)
        }
        text.endObject()
    }

    static func read(_ scanner: inout JSONScanner) throws -> Self {
        var pairs: Self = [:]
        try scanner.members { scanner, name in
            guard pairs.updateValue(try scanner.text(), forKey: name) == nil else { throw JSONScanner.Unexpected() }
        }
        return pairs
    }
}

// MARK: The structures of a record

extension SavedRange: RecordObject {
    static var blank: Self { Self(start: 0, end: nil) }

    mutating func visitFields<Visitor: FieldVisitor & ~Copyable>(_ visitor: inout Visitor) throws {
        try visitor.field("start", &start)
        try visitor.field("end", &end)
        try visitor.field("position", &position)
        try visitor.field("synced", &synced)
    }
}

extension PieceChecksum: RecordObject {
    static var blank: Self { Self(start: 0, end: 0, crc32c: 0) }

    mutating func visitFields<Visitor: FieldVisitor & ~Copyable>(_ visitor: inout Visitor) throws {
        try visitor.field("start", &start)
        try visitor.field("end", &end)
        try visitor.field("crc32c", &crc32c)
    }
}

extension FileIdentity: RecordObject {
    static var blank: Self { Self(inode: 0, length: 0, time: 0) }

    mutating func visitFields<Visitor: FieldVisitor & ~Copyable>(_ visitor: inout Visitor) throws {
        try visitor.field("inode", &inode)
        try visitor.field("length", &length)
        try visitor.field("time", &time)
        try visitor.field("born", &born)
    }
}

// The members of the next three are sorted by name: former versions wrote them with `StoreJSON`.

extension Waiting: RecordObject {
    static var blank: Self { Self(.engine) }

    mutating func visitFields<Visitor: FieldVisitor & ~Copyable>(_ visitor: inout Visitor) throws {
        try visitor.field("host", &host)
        try visitor.field("limit", &limit)
        try visitor.field("policy", &policy)
        try visitor.field("reason", &reason)
        try visitor.field("until", &until)
    }
}

extension HistoryLine: RecordObject {
    static var blank: Self { Self(time: Date(timeIntervalSince1970: 0), by: "", what: "") }

    mutating func visitFields<Visitor: FieldVisitor & ~Copyable>(_ visitor: inout Visitor) throws {
        try visitor.field("by", &by)
        try visitor.field("time", &time)
        try visitor.field("what", &what)
    }
}

extension DownloadError: RecordObject {
    static var blank: Self { Self(.disk, "") }

    mutating func visitFields<Visitor: FieldVisitor & ~Copyable>(_ visitor: inout Visitor) throws {
        try visitor.field("code", &code)
        try visitor.field("isRetryable", &isRetryable)
        try visitor.field("message", &message)
        try visitor.field("remedy", &remedyName)
        try visitor.field("retryAfter", &retryAfterSeconds)
        try visitor.field("status", &status)
        try visitor.field("underlying", &underlying)
        try visitor.field("url", &url)
    }
}

extension Validator: RecordObject {
    static var blank: Self { Self() }

    mutating func visitFields<Visitor: FieldVisitor & ~Copyable>(_ visitor: inout Visitor) throws {
        try visitor.field("etag", &etag)
        try visitor.field("lastModified", &lastModified)
        try visitor.field("date", &date)
        try visitor.rare("digest", &digest)
        try visitor.field("coding", &coding)
    }
}

extension ProgressMark: RecordObject {
    static var blank: Self { Self(received: 0, attempts: 0) }

    mutating func visitFields<Visitor: FieldVisitor & ~Copyable>(_ visitor: inout Visitor) throws {
        try visitor.field("received", &received)
        try visitor.field("attempts", &attempts)
    }
}

extension ResponseHead: RecordObject {
    static var blank: Self { Self(status: 0, url: "") }

    mutating func visitFields<Visitor: FieldVisitor & ~Copyable>(_ visitor: inout Visitor) throws {
        try visitor.field("status", &status)
        try visitor.field("httpVersion", &httpVersion)
        try visitor.field("fields", &fields)
        try visitor.field("url", &url)
        try visitor.field("redirects", &redirects)
    }
}

extension HeaderField: RecordObject {
    static var blank: Self { Self("", "") }

    /// As any object, without a copy: a record has several.
    func write(to text: inout JSONText) {
        text.beginObject()
        text.key("name")
        text.value(name)
        text.key("value")
        text.value(value)
        text.endObject()
    }

    mutating func visitFields<Visitor: FieldVisitor & ~Copyable>(_ visitor: inout Visitor) throws {
        try visitor.field("name", &name)
        try visitor.field("value", &value)
    }
}
