import FKMiddleware
import Foundation

extension TaskRecord {
    /// The record as JSON, with the same names and values as its `Codable` form, which is what reads it.
    func json() throws -> [UInt8] { try jsonText().bytes }

    /// - Parameter leading: bytes of room in front of it.
    func jsonText(leading: Int = 0) throws -> JSONText {
        var text = JSONText(capacity: InfoFormat.usualSlotSize, leading: leading)
        text.beginObject()
        text.key("id")
        text.value(id.hex)
        text.key("task")
        try task.write(to: &text)
        text.key("number")
        text.value(number)
        text.key("state")
        text.value(state.rawValue)
        try text.rare("waiting", waiting)
        text.key("ranges")
        text.beginArray()
        for range in ranges { range.write(to: &text) }
        text.endArray()
        if let pieces {
            text.key("pieces")
            text.beginArray()
            for piece in pieces { piece.write(to: &text) }
            text.endArray()
        }
        text.optional("expected", expected)
        if let validator {
            text.key("validator")
            text.beginObject()
            text.optional("etag", validator.etag)
            text.optional("lastModified", validator.lastModified)
            text.optional("date", validator.date)
            try text.rare("digest", validator.digest)
            text.optional("coding", validator.coding)
            text.endObject()
        }
        text.optional("source", source)
        text.key("attempts")
        text.value(attempts)
        try text.rare("error", error)
        if let response {
            text.key("response")
            response.write(to: &text)
        }
        text.key("barrels")
        text.value(barrels)
        text.optional("partName", partName)
        text.optional("partTime", partTime)
        text.optional("path", path)
        if let written {
            text.key("written")
            written.write(to: &text)
        }
        try text.rare("setAside", setAside)
        if let leftBehind {
            text.key("leftBehind")
            text.value(leftBehind)
        }
        text.key("created")
        text.value(created)
        text.optional("started", started)
        text.optional("finished", finished)
        text.optional("lastUsed", lastUsed)
        text.optional("bytesPerSecond", bytesPerSecond)
        text.optional("isForeign", isForeign)
        text.optional("synced", synced)
        text.optional("bootID", bootID)
        text.optional("lengthVerified", lengthVerified)
        text.key("history")
        if history.isEmpty {
            text.value([String]())
        } else {
            text.raw(try StoreJSON.encode(history))
        }
        text.endObject()
        return text
    }
}

extension TaskDescription {
    fileprivate func write(to text: inout JSONText) throws {
        text.beginObject()
        text.key("url")
        text.value(url)
        text.key("mirrors")
        text.value(mirrors)
        text.optional("directory", directory)
        text.optional("fileName", fileName)
        text.key("type")
        text.value(type.rawValue)
        text.key("priority")
        text.value(priority)
        text.key("attributes")
        text.raw(attributes.isEmpty ? Self.emptyObject : try StoreJSON.encode(attributes))
        text.key("options")
        text.raw(hasOptions ? try StoreJSON.encode(options) : Self.emptyObject)
        text.endObject()
    }

    private static let emptyObject = Array("{}".utf8)
}

extension SavedRange {
    fileprivate func write(to text: inout JSONText) {
        text.beginObject()
        text.key("start")
        text.value(start)
        text.optional("end", end)
        text.key("position")
        text.value(position)
        text.key("synced")
        text.value(synced)
        text.endObject()
    }
}

extension PieceChecksum {
    fileprivate func write(to text: inout JSONText) {
        text.beginObject()
        text.key("start")
        text.value(start)
        text.key("end")
        text.value(end)
        text.key("crc32c")
        text.value(UInt64(crc32c))
        text.endObject()
    }
}

extension FileIdentity {
    fileprivate func write(to text: inout JSONText) {
        text.beginObject()
        text.key("inode")
        text.value(inode)
        text.key("length")
        text.value(length)
        text.key("time")
        text.value(time)
        text.endObject()
    }
}

extension ResponseHead {
    fileprivate func write(to text: inout JSONText) {
        text.beginObject()
        text.key("status")
        text.value(status)
        text.key("httpVersion")
        text.value(httpVersion)
        text.key("fields")
        text.beginArray()
        for field in fields {
            text.beginObject()
            text.key("name")
            text.value(field.name)
            text.key("value")
            text.value(field.value)
            text.endObject()
        }
        text.endArray()
        text.key("url")
        text.value(url)
        text.key("redirects")
        text.value(redirects)
        text.endObject()
    }
}

extension JSONText {
    fileprivate mutating func optional(_ name: StaticString, _ text: String?) {
        guard let text else { return }
        key(name)
        value(text)
    }

    fileprivate mutating func optional(_ name: StaticString, _ number: Int64?) {
        guard let number else { return }
        key(name)
        value(number)
    }

    fileprivate mutating func optional(_ name: StaticString, _ date: Date?) {
        guard let date else { return }
        key(name)
        value(date)
    }

    fileprivate mutating func optional(_ name: StaticString, _ flag: Bool?) {
        guard let flag else { return }
        key(name)
        value(flag)
    }

    /// For what is seldom there: not worth code of its own.
    fileprivate mutating func rare(_ name: StaticString, _ part: (some Encodable)?) throws {
        guard let part else { return }
        key(name)
        raw(try StoreJSON.encode(part))
    }
}
