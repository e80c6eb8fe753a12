import FKMiddleware
import Foundation
import TestSupport
import Testing

@testable import FKCore

@Suite("Ranges of options")
struct RulesOptionRangeTests {
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

    @Test("the ends of the ranges are inside")
    func ends() throws {
        for limit in [ConnectionLimit.automatic, .fixed(1), .fixed(256)] {
            for number in [0, 1, Int64.max] {
                for timeout in [0.001, 1, 1e9] {
                    var options = TaskOptions()
                    options.maxSize = number
                    options.rateLimit = number
                    options.connections = limit
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

    @Test("settings of a downloader are refused by name, when it is made and when they change")
    func configure() async throws {
        let changes: [(String, (inout Configure) -> Void)] = [
            ("rateLimit is -5", { $0.rateLimit = -5 }), ("connections = .fixed is 0", { $0.connections = .fixed(0) }),
            ("transport.connectTimeout is -1", { $0.transport.connectTimeout = .seconds(-1) }),
            ("transport.connectTimeout is nan", { $0.transport.connectSeconds = .nan }),
            ("transport.stallTimeout is inf", { $0.transport.stallSeconds = .infinity }),
            ("transport.stallRate is -1", { $0.transport.stallRate = -1 }),
            ("transport.maxRedirects is -1", { $0.transport.maxRedirects = -1 }),
            ("transport.maxHeaderBytes is 0", { $0.transport.maxHeaderBytes = 0 }),
            ("transport.maxHeaderLines is 0", { $0.transport.maxHeaderLines = 0 }),
        ]
        let bench = try await Bench(content: [1])
        for (text, change) in changes {
            let folder = try TemporaryFolder()
            var configure = Configure(workPath: folder.file("work"))
            change(&configure)
            let made = configure
            let error = #expect(throws: DownloadError.self) { try Downloader(made) }
            #expect(
                error?.code == .invalidArgument && error?.message.hasPrefix(text) == true, "\(error?.message ?? "")")
            #expect(!FileManager.default.fileExists(atPath: folder.file("work").path))
            var live = await bench.downloader.configure
            change(&live)
            let changed = live
            let again = await #expect(throws: DownloadError.self) { try await bench.downloader.update(changed) }
            #expect(again?.message.hasPrefix(text) == true)
        }
        #expect(await bench.downloader.configure.rateLimit == nil)
    }
}
