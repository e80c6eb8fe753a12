import FKMiddleware
import Foundation

/// Reading what TaskRecord+JSON.swift writes. Its own objects come in the order in which they are written there; what
/// `StoreJSON` has written inside them comes in any order.
extension TaskRecord {
    /// Larger payloads are read only in the form in which we write them: `JSONDecoder` takes memory many times over.
    static let largestForeignPayload = 1 << 20

    /// - Throws: `.corruptInfo` naming what did not fit.
    static func read(_ payload: UnsafeRawBufferPointer) throws -> TaskRecord {
        if let record = readOwn(payload) { return try record.checked() }
        guard payload.count <= largestForeignPayload else {
            throw DownloadError(.corruptInfo, "Not a TaskRecord in a form this version understands.")
        }
        return try StoreJSON.decode(TaskRecord.self, from: payload).checked()
    }

    /// nil for anything that is not exactly as we write it; `StoreJSON.decode` says then what it is.
    static func readOwn(_ payload: UnsafeRawBufferPointer) -> TaskRecord? {
        payload.withMemoryRebound(to: UInt8.self) { bytes in
            do {
                var scanner = JSONScanner(bytes)
                let record = try TaskRecord(&scanner)
                return scanner.isAtEnd ? record : nil
            } catch {
                return nil
            }
        }
    }

    private init(_ scanner: inout JSONScanner) throws(JSONScanner.Unexpected) {
        try scanner.beginObject()
        try scanner.need("id")
        guard let id = TaskID(hexDigits: try scanner.plainText()) else { throw JSONScanner.Unexpected() }
        try scanner.need("task")
        let task = try TaskDescription(&scanner)
        try scanner.need("number")
        let number = try scanner.integer(UInt64.self)
        try scanner.need("state")
        guard let state = DownloadState(rawValue: try scanner.text()) else { throw JSONScanner.Unexpected() }
        let waiting = scanner.has("waiting") ? try Waiting(&scanner) : nil
        try scanner.need("ranges")
        var ranges: [SavedRange] = []
        try scanner.elements { (scanner) throws(JSONScanner.Unexpected) in ranges.append(try SavedRange(&scanner)) }
        var pieces: [PieceChecksum]?
        if scanner.has("pieces") {
            var list: [PieceChecksum] = []
            try scanner.elements { (scanner) throws(JSONScanner.Unexpected) in
                list.append(try PieceChecksum(&scanner))
            }
            pieces = list
        }
        let expected = scanner.has("expected") ? try scanner.integer(Int64.self) : nil
        let validator = scanner.has("validator") ? try Validator(&scanner) : nil
        let source = scanner.has("source") ? try scanner.text() : nil
        try scanner.need("attempts")
        let attempts = try scanner.integer(Int.self)
        let error = scanner.has("error") ? try DownloadError(&scanner) : nil
        let response = scanner.has("response") ? try ResponseHead(&scanner) : nil
        try scanner.need("barrels")
        let barrels = try scanner.texts()
        let partName = scanner.has("partName") ? try scanner.text() : nil
        let partTime = scanner.has("partTime") ? try scanner.integer(Int64.self) : nil
        let path = scanner.has("path") ? try scanner.text() : nil
        let written = scanner.has("written") ? try FileIdentity(&scanner) : nil
        var setAside: [SetAsideFile]?
        if scanner.has("setAside") {
            guard let value = try? StoreJSON.decode([SetAsideFile].self, from: try scanner.rawValue()) else {
                throw JSONScanner.Unexpected()
            }
            setAside = value
        }
        let leftBehind = scanner.has("leftBehind") ? try scanner.texts() : nil
        try scanner.need("created")
        self.init(task: task, id: id, number: number, created: try scanner.date())
        self.state = state
        self.waiting = waiting
        self.ranges = ranges
        self.pieces = pieces
        self.expected = expected
        self.validator = validator
        self.source = source
        self.attempts = attempts
        self.error = error
        self.response = response
        self.barrels = barrels
        self.partName = partName
        self.partTime = partTime
        self.path = path
        self.written = written
        self.setAside = setAside
        self.leftBehind = leftBehind
        if scanner.has("started") { started = try scanner.date() }
        if scanner.has("finished") { finished = try scanner.date() }
        if scanner.has("lastUsed") { lastUsed = try scanner.date() }
        if scanner.has("bytesPerSecond") { bytesPerSecond = try scanner.integer() }
        if scanner.has("isForeign") { isForeign = try scanner.flag() }
        if scanner.has("synced") { synced = try scanner.flag() }
        if scanner.has("bootID") { bootID = try scanner.text() }
        if scanner.has("lengthVerified") { lengthVerified = try scanner.flag() }
        try scanner.need("history")
        var history: [Verdict] = []
        try scanner.elements { (scanner) throws(JSONScanner.Unexpected) in history.append(try Verdict(&scanner)) }
        self.history = history
        try scanner.endObject()
    }
}

extension PieceChecksum {
    fileprivate init(_ scanner: inout JSONScanner) throws(JSONScanner.Unexpected) {
        try scanner.beginObject()
        try scanner.need("start")
        let start: Int64 = try scanner.integer()
        try scanner.need("end")
        let end: Int64 = try scanner.integer()
        try scanner.need("crc32c")
        self.init(start: start, end: end, crc32c: try scanner.integer())
        try scanner.endObject()
    }
}

extension FileIdentity {
    fileprivate init(_ scanner: inout JSONScanner) throws(JSONScanner.Unexpected) {
        try scanner.beginObject()
        try scanner.need("inode")
        let inode = try scanner.integer(UInt64.self)
        try scanner.need("length")
        let length: Int64 = try scanner.integer()
        try scanner.need("time")
        self.init(inode: inode, length: length, time: try scanner.integer())
        try scanner.endObject()
    }
}

extension TaskDescription {
    fileprivate init(_ scanner: inout JSONScanner) throws(JSONScanner.Unexpected) {
        try scanner.beginObject()
        try scanner.need("url")
        self.init(url: try scanner.text())
        try scanner.need("mirrors")
        mirrors = try scanner.texts()
        if scanner.has("directory") { directory = try scanner.text() }
        if scanner.has("fileName") { fileName = try scanner.text() }
        try scanner.need("type")
        guard let type = DownloadType(rawValue: try scanner.text()) else { throw JSONScanner.Unexpected() }
        self.type = type
        try scanner.need("priority")
        priority = try scanner.integer()
        try scanner.need("attributes")
        var attributes: [String: String] = [:]
        try scanner.members { (scanner, name) throws(JSONScanner.Unexpected) in
            guard let name = String(validating: name, as: UTF8.self),
                attributes.updateValue(try scanner.text(), forKey: name) == nil
            else { throw JSONScanner.Unexpected() }
        }
        self.attributes = attributes
        try scanner.need("options")
        let options = try scanner.rawValue()
        if !options.elementsEqual("{}".utf8) {
            guard let value = try? StoreJSON.decode(TaskOptions.self, from: options) else {
                throw JSONScanner.Unexpected()
            }
            self.options = value
        }
        try scanner.endObject()
    }
}

extension SavedRange {
    fileprivate init(_ scanner: inout JSONScanner) throws(JSONScanner.Unexpected) {
        try scanner.beginObject()
        try scanner.need("start")
        let start = try scanner.integer(Int64.self)
        let end = scanner.has("end") ? try scanner.integer(Int64.self) : nil
        try scanner.need("position")
        let position = try scanner.integer(Int64.self)
        try scanner.need("synced")
        self.init(start: start, end: end, position: position, synced: try scanner.integer())
        try scanner.endObject()
    }
}

extension Validator {
    fileprivate init(_ scanner: inout JSONScanner) throws(JSONScanner.Unexpected) {
        try scanner.beginObject()
        self.init()
        if scanner.has("etag") { etag = try scanner.text() }
        if scanner.has("lastModified") { lastModified = try scanner.text() }
        if scanner.has("date") { date = try scanner.text() }
        if scanner.has("digest") {
            guard let value = try? StoreJSON.decode(Checksum.self, from: try scanner.rawValue()) else {
                throw JSONScanner.Unexpected()
            }
            digest = value
        }
        if scanner.has("coding") { coding = try scanner.text() }
        try scanner.endObject()
    }
}

extension ResponseHead {
    fileprivate init(_ scanner: inout JSONScanner) throws(JSONScanner.Unexpected) {
        try scanner.beginObject()
        try scanner.need("status")
        let status = try scanner.integer(Int.self)
        try scanner.need("httpVersion")
        let version = try scanner.text()
        try scanner.need("fields")
        var fields: [Field] = []
        try scanner.elements { (scanner) throws(JSONScanner.Unexpected) in
            try scanner.beginObject()
            try scanner.need("name")
            let name = try scanner.text()
            try scanner.need("value")
            fields.append(Field(name, try scanner.text()))
            try scanner.endObject()
        }
        try scanner.need("url")
        let url = try scanner.text()
        try scanner.need("redirects")
        self.init(
            status: status, httpVersion: version, fields: fields, url: url, redirects: try scanner.integer())
        try scanner.endObject()
    }
}

extension Waiting {
    fileprivate init(_ scanner: inout JSONScanner) throws(JSONScanner.Unexpected) {
        var reason: Reason?
        var until: Date?
        var host: String?
        var limit: Int?
        try scanner.members { (scanner, name) throws(JSONScanner.Unexpected) in
            if name.spells("reason"), reason == nil {
                reason = Reason(rawValue: try scanner.text())
            } else if name.spells("until"), until == nil {
                until = try scanner.date()
            } else if name.spells("host"), host == nil {
                host = try scanner.text()
            } else if name.spells("limit"), limit == nil {
                limit = try scanner.integer()
            } else {
                throw JSONScanner.Unexpected()
            }
        }
        guard let reason else { throw JSONScanner.Unexpected() }
        self.init(reason, until: until, host: host, limit: limit)
    }
}

extension Verdict {
    fileprivate init(_ scanner: inout JSONScanner) throws(JSONScanner.Unexpected) {
        var time: Date?
        var by: String?
        var what: String?
        try scanner.members { (scanner, name) throws(JSONScanner.Unexpected) in
            if name.spells("time"), time == nil {
                time = try scanner.date()
            } else if name.spells("by"), by == nil {
                by = try scanner.text()
            } else if name.spells("what"), what == nil {
                what = try scanner.text()
            } else {
                throw JSONScanner.Unexpected()
            }
        }
        guard let time, let by, let what else { throw JSONScanner.Unexpected() }
        self.init(time: time, by: by, what: what)
    }
}

extension DownloadError {
    fileprivate init(_ scanner: inout JSONScanner) throws(JSONScanner.Unexpected) {
        var code: String?
        var message: String?
        var isRetryable: Bool?
        var url: String?
        var status: Int?
        var underlying: String?
        var retryAfter: Double?
        try scanner.members { (scanner, name) throws(JSONScanner.Unexpected) in
            if name.spells("code"), code == nil {
                code = try scanner.text()
            } else if name.spells("message"), message == nil {
                message = try scanner.text()
            } else if name.spells("isRetryable"), isRetryable == nil {
                isRetryable = try scanner.flag()
            } else if name.spells("url"), url == nil {
                url = try scanner.text()
            } else if name.spells("status"), status == nil {
                status = try scanner.integer()
            } else if name.spells("underlying"), underlying == nil {
                underlying = try scanner.text()
            } else if name.spells("retryAfter"), retryAfter == nil {
                retryAfter = try scanner.decimal()
            } else {
                throw JSONScanner.Unexpected()
            }
        }
        guard let code, let message, let isRetryable else { throw JSONScanner.Unexpected() }
        self.init(
            Code(code), message, url: url, status: status, underlying: underlying, isRetryable: isRetryable,
            retryAfter: retryAfter)
    }
}
