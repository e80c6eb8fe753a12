import TestSupport
import Testing

@Suite("Ranges of options")
struct OptionRangeTests {
    struct Row: Sendable, CustomTestStringConvertible {
        var testDescription: String
        var change: @Sendable (inout TaskOptions) -> Void
        init(_ text: String, _ change: @escaping @Sendable (inout TaskOptions) -> Void) {
            testDescription = text
            self.change = change
        }
    }

    static let refused: [Row] = [
        .init("options.maxSize is -1") { $0.maxSize = -1 }, .init("options.maxSize is") { $0.maxSize = .min },
        .init("options.rateLimit is -5") { $0.rateLimit = -5 },
        .init("options.connections = .fixed is 0") { $0.connections = .fixed(0) },
        .init("options.connections = .fixed is -1") { $0.connections = .fixed(-1) },
        .init("options.connections = .fixed is 257") { $0.connections = .fixed(257) },
        .init("options.maxAttempts is 0, and must be from 1 to 1001") { $0.maxAttempts = 0 },
        .init("options.maxAttempts is 1002") { $0.maxAttempts = 1_002 },
        .init("options.minFree is -1") { $0.minFree = -1 }, .init("options.size is -1") { $0.size = -1 },
        .init("options.timeout is 0.0 s") { $0.timeout = .zero },
        .init("options.timeout is -1.0 s") { $0.timeout = .seconds(-1) },
        .init("options.timeout is nan") { $0.timeoutSeconds = .nan },
        .init("options.timeout is inf") { $0.timeoutSeconds = .infinity },
        .init("options.timeout is 1e+18 s") { $0.timeout = .seconds(1e18) },
        .init("options.stallTimeout is 0.0 s") { $0.stallTimeout = .zero },
        .init("options.stallTimeout is -0.001 s") { $0.stallTimeout = .milliseconds(-1) },
        .init("options.deadline") { $0.deadline = Date(timeIntervalSince1970: -1) },
        .init("options.deadline") { $0.deadline = Date(timeIntervalSince1970: 9e10) },
        .init("options.deadline") { $0.deadline = Date(timeIntervalSince1970: .nan) },
    ]

    @Test(
        "a value outside its range is refused by name, where tasks are made and where they are known",
        arguments: refused)
    func options(_ row: Row) async throws {
        var options = TaskOptions()
        row.change(&options)
        let made = options
        let error = #expect(throws: DownloadError.self) { try made.validate() }
        #expect(error?.code == .invalidArgument)
        #expect(error?.message.hasPrefix(row.testDescription) == true, "\(error?.message ?? "")")
        #expect(error?.message.contains("must be") == true)
        let bench = try await Bench(content: [1])
        for _ in 0..<2 {
            let error = await #expect(throws: DownloadError.self) { try await bench.add("a") { $0.options = made } }
            #expect(error?.code == .invalidArgument)
            #expect(error?.message.contains(row.testDescription) == true, "\(error?.message ?? "")")
            _ = try await bench.add("a")
        }
    }

    @Test("files are URLs in the API and paths in records, as before")
    func files() throws {
        let stored = Data(#"{"caFile":"/etc/a%20b ä.pem","cookieFile":"/c"}"#.utf8)
        var options = try JSONDecoder().decode(TaskOptions.self, from: stored)
        #expect(options.caFile == URL(fileURLWithPath: "/etc/a%20b ä.pem") && options.cookieFile?.path == "/c")
        let other = TransportOptions()
        #expect(options.transportOptions(over: other).caPath == "/etc/a%20b ä.pem")
        options.caFile = options.caFile
        options.cookieFile = nil
        let again = try JSONSerialization.jsonObject(with: JSONEncoder().encode(options)) as? [String: String]
        #expect(again == ["caFile": "/etc/a%20b ä.pem"])
        options.caFile = URL(fileURLWithPath: "here.pem")
        #expect(options.caPath == FileManager.default.currentDirectoryPath + "/here.pem")
        let transport = try JSONDecoder().decode(
            TransportOptions.self,
            from: { () throws -> Data in
                var full = TransportOptions()
                full.crlFile = URL(fileURLWithPath: "/crl")
                return try JSONEncoder().encode(full)
            }())
        #expect(transport.crlPath == "/crl" && transport.fault == nil)
        for text in ["https://a.example/ca.pem", "data:,x", "relative.pem"] {
            options.caFile = URL(string: text)
            #expect(options.fault?.hasPrefix("options.caFile is \"\(text)\", and must be") == true)
        }
    }

    @Test("the ends of the ranges are inside")
    func ends() throws {
        for limit in [ConnectionLimit.automatic, .fixed(1), .fixed(256)] {
            for number in [0, 1, Int64.max] {
                for timeout in [0.001, 1, 1e9] {
                    var options = TaskOptions()
                    options.maxSize = number
                    options.rateLimit = number
                    options.connections = limit
                    options.maxAttempts = timeout > 1 ? 1_001 : 1
                    options.minFree = number
                    options.timeout = .seconds(timeout)
                    options.stallTimeout = .seconds(timeout)
                    options.deadline = Date.distantFuture
                    try options.validate()
                    #expect(options.clamped() == options)
                }
            }
        }
        try TaskOptions().validate()
        try Configure(workPath: URL(fileURLWithPath: "/x")).validate()
    }

    @Test("a record with a value outside its range is read with the nearest one inside", arguments: refused)
    func records(_ row: Row) throws {
        var options = TaskOptions()
        row.change(&options)
        let clamped = options.clamped()
        #expect(clamped != options)
        if options.timeoutSeconds?.isNaN != true { try clamped.validate() }
        guard options.timeoutSeconds?.isFinite != false else { return }
        var task = TaskDescription(url: "http://h.example/a")
        task.options = options
        let record = TaskRecord(task: task, number: 1, created: Date(timeIntervalSince1970: 0))
        let read = try record.json().withUnsafeBytes { try TaskRecord.read($0) }
        #expect(read.task.options == clamped)
    }

    struct Setting: Sendable, CustomTestStringConvertible {
        var testDescription: String
        var change: @Sendable (inout Configure) -> Void
        init(_ text: String, _ change: @escaping @Sendable (inout Configure) -> Void) {
            testDescription = text
            self.change = change
        }
    }

    static let settings: [Setting] = [
        .init("rateLimit is -5, and must be at least 0") { $0.rateLimit = -5 },
        .init("connections = .fixed is 0, and must be from 1 to 256") { $0.connections = .fixed(0) },
        .init("connections = .fixed is 257") { $0.connections = .fixed(257) },
        .init("maxConnectionsPerHost is 0, and must be from 1 to 256") { $0.maxConnectionsPerHost = 0 },
        .init("maxConnectionsPerHost is -3") { $0.maxConnectionsPerHost = -3 },
        .init("maxConnectionsPerHost is 257") { $0.maxConnectionsPerHost = 257 },
        .init("progressInterval is 0.0 s, and must be from 0.2 s to 2.0 s") { $0.progressInterval = .zero },
        .init("progressInterval is -1.0 s") { $0.progressInterval = .seconds(-1) },
        .init("progressInterval is 2.001 s") { $0.progressInterval = .milliseconds(2_001) },
        .init("minFree is -1, and must be at least 0") { $0.minFree = -1 },
        .init("retry.maxAttempts is 0, and must be from 1 to 1001") { $0.retry.maxAttempts = 0 },
        .init("retry.maxAttempts is 1002") { $0.retry = RetryPolicy(maxAttempts: 1_002) },
        .init("retry.baseDelay is -1.0 s, and must be from 0.0 s to 3600.0 s") { $0.retry.baseDelay = .seconds(-1) },
        .init("retry.baseDelay is 3601.0 s") { $0.retry.baseDelay = .seconds(3_601) },
        .init("retry.maxDelay is -1.0 s, and must be from 0.0 s to 86400.0 s") { $0.retry.maxDelay = .seconds(-1) },
        .init("retry.maxDelay is 86401.0 s") { $0.retry.maxDelay = .seconds(86_401) },
        .init("retry.jitter is -0.5, and must be from 0.0 to 1.0") { $0.retry.jitter = -0.5 },
        .init("retry.jitter is 1.5") { $0.retry.jitter = 1.5 },
        .init("retry.jitter is nan") { $0.retry.jitter = .nan },
        .init("retry.maxRetryAfter is -1.0 s") { $0.retry.maxRetryAfter = .seconds(-1) },
        .init("retry.maxRetryAfter is 86401.0 s") { $0.retry.maxRetryAfter = .seconds(86_401) },
        .init("transport.connectTimeout is -1") { $0.transport.connectTimeout = .seconds(-1) },
        .init("transport.connectTimeout is nan") { $0.transport.connectSeconds = .nan },
        .init("transport.stallTimeout is inf") { $0.transport.stallSeconds = .infinity },
        .init("transport.stallRate is -1") { $0.transport.stallRate = -1 },
        .init("transport.maxRedirects is -1") { $0.transport.maxRedirects = -1 },
        .init("transport.maxHeaderBytes is 0") { $0.transport.maxHeaderBytes = 0 },
        .init("transport.maxHeaderLines is 0") { $0.transport.maxHeaderLines = 0 },
    ]

    @Test(
        "a setting outside its range is refused by name, when a downloader is made and when it changes",
        arguments: settings)
    func configure(_ row: Setting) async throws {
        let folder = try TemporaryFolder()
        var configure = Configure(workPath: folder.file("work"))
        row.change(&configure)
        let made = configure
        for role in [DownloaderRole.owner, .client, .either] {
            let error = #expect(throws: DownloadError.self) { try Downloader(made, role: role) }
            #expect(error?.code == .invalidArgument)
            #expect(error?.message.hasPrefix(row.testDescription) == true, "\(error?.message ?? "")")
        }
        #expect(!FileManager.default.fileExists(atPath: folder.file("work").path))
        let bench = try await Bench(content: [1])
        var live = await bench.downloader.configure
        let before = live.progressInterval
        row.change(&live)
        let changed = live
        let again = await #expect(throws: DownloadError.self) { try await bench.downloader.update(changed) }
        #expect(again?.message.hasPrefix(row.testDescription) == true)
        #expect(await bench.downloader.configure.progressInterval == before)
    }

    @Test("the ends of the ranges of settings are inside")
    func settingEnds() throws {
        for isLow in [true, false] {
            var configure = Configure(workPath: URL(fileURLWithPath: "/x"))
            configure.connections = .fixed(isLow ? 1 : 256)
            configure.maxConnectionsPerHost = isLow ? 1 : 256
            configure.progressInterval = .milliseconds(isLow ? 200 : 2_000)
            configure.minFree = isLow ? 0 : .max
            configure.rateLimit = isLow ? 0 : .max
            configure.retry = RetryPolicy(
                maxAttempts: isLow ? 1 : 1_001, baseDelay: .seconds(isLow ? 0 : 3_600),
                maxDelay: .seconds(isLow ? 0 : 86_400), jitter: isLow ? 0 : 1,
                maxRetryAfter: .seconds(isLow ? 0 : 86_400))
            try configure.validate()
        }
    }

    @Test("a work path that is no file is refused", arguments: ["http://user:pw@h.example/w", "ftp://h/w", "w"])
    func workPath(_ text: String) throws {
        let url = try #require(URL(string: text))
        for role in [DownloaderRole.owner, .client, .either] {
            let error = #expect(throws: DownloadError.self) { try Downloader(Configure(workPath: url), role: role) }
            #expect(error?.code == .invalidArgument && error?.message.contains("must be a file URL") == true)
            #expect(error?.message.contains("pw") == false)
        }
    }
}
