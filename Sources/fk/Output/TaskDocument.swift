import FKCore
import FKMiddleware

/// A task as `fk info --json` prints it. `fk list --json` prints an array of them.
enum TaskDocument {
    static func json(_ record: TaskRecord) -> [UInt8] { json(record, isExport: false) }

    /// The same with `gone`: the file of a complete task is looked for.
    static func lookingForFile(_ record: TaskRecord) -> [UInt8] {
        json(record, isExport: false, isGone: record.hasLostFile)
    }

    /// - Parameters:
    ///   - isExport: true for a list that can be imported: it has the whole URLs, with the mirrors.
    ///   - pieces: the digests of the file's pieces as JSON; nil, the default, for none.
    ///   - places: the stored form of the record's places, to tell the base; nil, the default, leaves it out.
    ///   - isGone: true if the file of a complete task is gone or has another length; nil, the default, if nobody has looked.
    static func json(
        _ record: TaskRecord, isExport: Bool, pieces: [UInt8]? = nil, places: Places? = nil,
        isGone: Bool? = nil
    ) -> [UInt8] {
        var text = JSONText()
        text.beginObject()
        text.member("id", record.id.hex)
        text.member("url", isExport ? record.address(0) : record.task.url.masked)
        if isExport {
            text.key("mirrors")
            text.beginArray()
            for mirror in record.task.mirrors { text.value(mirror) }
            text.endArray()
        }
        text.member("state", record.state.rawValue)
        if !isExport {
            let name = record.presentName
            text.member("name", name)
            text.member("format", DownloadRecord.format(of: name))
            // A server may repeat a secret of the request.
            let type = record.mimeType
            text.member("mimeType", record.task.hasOptions ? type.map { record.secretBook.mask($0) } : type)
        }
        text.member("received", record.received)
        text.member("expected", record.expected)
        if !isExport { text.member("percentage", record.percentage) }
        text.member("path", record.path)
        if let isGone { text.member("gone", isGone) }
        text.member("synced", record.isOnDisk)
        text.member("attempts", Int64(record.attempts))
        // That of a task which has stopped is the rate of its last attempt.
        let hasRate = record.state == .action || record.state == .complete
        text.member("bytesPerSecond", hasRate ? record.bytesPerSecond : nil)
        text.key("barrels")
        text.beginArray()
        for barrel in record.barrels { text.value(barrel) }
        text.endArray()
        text.member("error", json: record.shownError?.document)
        text.member("waiting", json: record.waiting?.document)
        text.member("directory", record.task.directory)
        if let places { text.member("base", places.base(of: record)?.name) }
        text.member("fileName", record.task.fileName)
        text.member("checksum", record.task.optionsBox?.value.checksum?.description)
        text.member("list", json: record.task.optionsBox?.value.list?.document)
        text.member("signedBy", record.task.optionsBox?.value.signature?.key)
        if let pieces {
            text.key("pieces")
            text.raw(pieces)
        }
        text.member("contentEncoding", record.validator?.coding)
        text.member("attributes", json: .texts(record.task.attributes))
        text.member("insecure", record.task.optionsBox?.value.insecure ?? false)
        text.member("created", record.created.timestamp)
        text.member("started", record.started.map(\.timestamp))
        text.member("finished", record.finished.map(\.timestamp))
        text.member("lastUsed", record.lastUsed.map(\.timestamp))
        text.endObject()
        return text.bytes
    }
}

extension Places {
    /// The base of a task's file, or of its folder.
    func base(of record: TaskRecord) -> Base? { (record.path ?? record.task.directory).flatMap(base) }
}

extension ListOrigin {
    /// The list that a file came from; its signer only if there is one.
    var document: JSON { .members(["name": .string(name), "signer": JSON(signer)], omittingNull: true) }
}

extension DownloadError {
    /// The last error of a task. `reason` explains the message of an HTTP status, if it is known.
    var document: JSON {
        .members([
            "code": .string(code.rawValue), "message": .string(text), "reason": JSON(reason),
            "retryable": .bool(isRetryable), "status": JSON(status),
        ])
    }
}

extension Waiting {
    /// Why a task waits. `until` is a time, `limit` a number of connections or slots, `policy` a host's limit.
    var document: JSON {
        .members([
            "host": JSON(host), "limit": JSON(limit), "policy": JSON(policy), "reason": .string(reason.rawValue),
            "until": JSON(until.map(\.timestamp)),
        ])
    }
}
