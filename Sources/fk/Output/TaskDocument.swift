import FKCore
import FKMiddleware

/// A task as `fk info --json` prints it. `fk list --json` prints an array of them.
enum TaskDocument {
    /// The JSON document of a record.
    static func json(_ record: TaskRecord) -> [UInt8] { json(record, isExport: false) }

    /// The JSON document of a record.
    ///
    /// - Parameters:
    ///   - isExport: true for a list that can be imported: it has the whole URLs, with the mirrors.
    ///   - pieces: the digests of the file's pieces as JSON; nil, the default, for none.
    ///   - places: the stored form of the record's places, to tell the base; nil, the default, leaves it out.
    static func json(
        _ record: TaskRecord, isExport: Bool, pieces: [UInt8]? = nil, places: Places? = nil
    ) -> [UInt8] {
        var text = JSONText()
        text.beginObject()
        text.member("id", record.id.hex)
        text.member("url", isExport ? record.task.url : URLMasking.mask(record.task.url))
        if isExport {
            text.key("mirrors")
            text.beginArray()
            for mirror in record.task.mirrors { text.value(mirror) }
            text.endArray()
        }
        text.member("state", record.state.rawValue)
        text.member("received", record.received)
        text.member("expected", record.expected)
        text.member("path", record.path)
        text.member("synced", record.isOnDisk)
        text.member("attempts", Int64(record.attempts))
        // That of a task which has stopped is the rate of its last attempt.
        let hasRate = record.state == .action || record.state == .complete
        text.member("bytesPerSecond", hasRate ? record.bytesPerSecond : nil)
        text.key("barrels")
        text.beginArray()
        for barrel in record.barrels { text.value(barrel) }
        text.endArray()
        text.member("error", record.error.map(ErrorDocument.init))
        text.member("waiting", record.waiting.map(WaitingDocument.init))
        text.member("directory", record.task.directory)
        if let places { text.member("base", places.base(of: record)?.name) }
        text.member("fileName", record.task.fileName)
        text.member("checksum", record.task.hasOptions ? record.task.options.checksum?.description : nil)
        text.member("list", record.task.option { $0.list })
        text.member("signedBy", record.task.option { $0.signature?.key })
        if let pieces {
            text.key("pieces")
            text.raw(pieces)
        }
        text.member("contentEncoding", record.validator?.coding)
        text.key("attributes")
        text.raw(record.task.attributes.isEmpty ? Array("{}".utf8) : JSONOutput.encode(record.task.attributes))
        text.member("insecure", record.task.hasOptions && record.task.options.insecure ?? false)
        text.member("created", Timestamp.text(record.created))
        text.member("started", record.started.map(Timestamp.text))
        text.member("finished", record.finished.map(Timestamp.text))
        text.member("lastUsed", record.lastUsed.map(Timestamp.text))
        text.endObject()
        return text.bytes
    }
}

extension Places {
    /// The base of a task's file, or of its folder.
    func base(of record: TaskRecord) -> Base? { (record.path ?? record.task.directory).flatMap(base) }
}

/// The last error of a task. `reason` explains the message of an HTTP status, if it is known.
struct ErrorDocument: Encodable {
    let code: String
    let message: String
    @OrNull var reason: String?
    @OrNull var status: Int?
    let retryable: Bool

    init(_ error: DownloadError) {
        code = error.code.rawValue
        message = error.text
        reason = error.reason
        status = error.status
        retryable = error.isRetryable
    }
}

/// Why a task waits. `until` is a time, `limit` a number of connections or slots, `policy` a host's limit.
struct WaitingDocument: Encodable {
    let reason: String
    @OrNull var until: String?
    @OrNull var host: String?
    @OrNull var limit: Int?
    @OrNull var policy: String?

    init(_ waiting: Waiting) {
        reason = waiting.reason.rawValue
        until = waiting.until.map(Timestamp.text)
        host = waiting.host
        limit = waiting.limit
        policy = waiting.policy
    }
}

/// Writes members of an object. nil becomes null.
extension JSONText {
    mutating func member(_ name: StaticString, _ value: String?) {
        key(name)
        if let value { self.value(value) } else { raw("null") }
    }

    mutating func member(_ name: StaticString, _ value: Int64?) {
        key(name)
        if let value { self.value(value) } else { raw("null") }
    }

    mutating func member(_ name: StaticString, _ value: Bool?) {
        key(name)
        if let value { self.value(value) } else { raw("null") }
    }

    /// Writes a value that few tasks have. It uses the encoder for documents.
    mutating func member(_ name: StaticString, _ value: (some Encodable)?) {
        key(name)
        if let value { raw(JSONOutput.encode(value)) } else { raw("null") }
    }
}
