import TestSupport

/// A work path in a new temporary folder, removed with the object.
final class ScratchWorkPath: Sendable {
    let path: WorkPath

    init(create: Bool = true) throws {
        let name = "fk-store-\(UInt64.random(in: 0 ... .max))"
        path = WorkPath(FileManager.default.temporaryDirectory.appendingPathComponent(name).path)
        if create { try path.open(create: true) }
    }

    deinit { try? FileManager.default.removeItem(atPath: path.root) }

    func names(_ folder: String) -> [String] { ((try? FileIO.names(in: folder)) ?? []).sorted() }

    /// Makes a task with its info file.
    @discardableResult
    func add(_ record: TaskRecord) throws -> InfoHandle {
        try InfoFile.create(at: path.infoPath(record.id), record: record)
    }
}

func mode(_ path: String) throws -> Int {
    let attributes = try FileManager.default.attributesOfItem(atPath: path)
    return (attributes[.posixPermissions] as? NSNumber)?.intValue ?? -1
}

func bytes(_ path: String) throws -> [UInt8] { [UInt8](try Data(contentsOf: URL(fileURLWithPath: path))) }

func write(_ bytes: [UInt8], _ path: String) throws { try Data(bytes).write(to: URL(fileURLWithPath: path)) }

/// Replaces bytes of a file in place.
func overwrite(_ path: String, with bytes: [UInt8], at offset: Int = 0) throws {
    let file = try FileHandle(forWritingTo: URL(fileURLWithPath: path))
    try file.seek(toOffset: UInt64(offset))
    try file.write(contentsOf: Data(bytes))
    try file.close()
}

extension TaskRecord {
    /// Times are whole milliseconds, as the store keeps them.
    static func sample(
        _ url: String = "https://example.com/a.bin", number: UInt64 = 1, directory: String? = nil
    ) -> TaskRecord {
        var task = TaskDescription(url: url)
        task.directory = directory
        return TaskRecord(task: task, number: number, created: Date(timeIntervalSince1970: 1_700_000_000.25))
    }

    /// Every field set.
    static func full() -> TaskRecord {
        var record = sample("https://user@example.com/d/%C3%A9?q=\"\\", number: 77, directory: "/data/é\u{1}")
        record.task.mirrors = ["https://b.example/x"]
        record.task.fileName = "name \u{1F600}.bin"
        record.task.type = .foreground
        record.task.priority = -3
        record.task.attributes = ["k": "v", "": "\n"]
        record.task.options.headers = [.init("X-A", "1"), .init("X-A", "2")]
        record.task.options.secretHeaders = ["X-A"]
        record.task.options.checksum = try? Checksum(parsing: "md5=d41d8cd98f00b204e9800998ecf8427e")
        record.task.options.maxSize = .max
        record.task.options.connections = .fixed(4)
        record.task.options.rateLimit = 1
        record.task.options.maxAttempts = 3
        record.task.options.timeout = .seconds(1.5)
        record.task.options.existing = .rename
        record.task.options.insecure = true
        record.state = .error
        record.edit {
            $0.waiting = Waiting(.noSpace, until: Date(timeIntervalSince1970: 1_700_000_001.125))
            $0.ranges = [
                SavedRange(start: 0, end: 10, position: 5, synced: 3), SavedRange(start: 10, end: nil),
            ]
            $0.expected = 1 << 40
            $0.validator = Validator(etag: "W/\"x\"", lastModified: "l", date: "d")
            $0.attempts = 9
            $0.error = DownloadError(
                .httpStatus, "Not there.", url: "https://example.com/", status: 404, underlying: "u", isRetryable: true,
                retryAfter: .seconds(2.5))
            $0.response = ResponseHead(
                status: 206, httpVersion: "2", fields: [.init("ETag", "\"e\"")], url: "https://c.example/", redirects: 2
            )
        }
        record.barrels = ["a", "ü/"]
        record.edit {
            $0.partName = FileNameRules.partName(for: "p", id: $0.id)
            $0.partFolder = "/data/parts"
            $0.partTime = 1_700_000_000_123_456_789
            $0.path = "/data/x"
            $0.started = Date(timeIntervalSince1970: 1_700_000_002.5)
            $0.finished = Date(timeIntervalSince1970: 1_700_000_003)
            $0.synced = true
        }
        record.bootID = "boot"
        record.edit {
            $0.lengthVerified = false
            $0.history = [HistoryLine(time: Date(timeIntervalSince1970: 1_700_000_002), by: "attempt", what: "one")]
        }
        return record
    }
}
