import TestSupport
import Testing

@testable import FKEngine
@testable import FKModel

@Suite("Values of infos and settings")
struct InfoValueTests {
    private static let until = Date(timeIntervalSince1970: 1_700_000_000)

    private static let reasons: [(Waiting, WaitReason)] = [
        (Waiting(.slot, limit: 3), .slot(limit: 3)), (Waiting(.slot), .slot(limit: nil)),
        (Waiting(.host, host: "h", limit: 2), .host("h", limit: 2)),
        (Waiting(.host, until: until, host: "h"), .hostPaused("h", until: until)),
        (Waiting(.retry, until: until), .retry(until: until)),
        (Waiting(.retry), .retry(until: Date(timeIntervalSince1970: 0))), (Waiting(.noSpace), .noSpace),
        (Waiting(.engine), .engine), (Waiting(.queue), .queue),
    ]

    @Test("each reason of a record is a case, and back") func reasons() {
        for (waiting, reason) in Self.reasons {
            #expect(WaitReason(waiting) == reason)
            #expect(WaitReason(Waiting(of: reason)) == reason)
        }
        var info = DownloadInfo(id: TaskID(url: "u"), url: "u", state: .idle)
        #expect(info.waiting == nil && info.waitingUntil == nil)
        info.waiting = .hostPaused("h", until: Self.until)
        #expect(info.waitingUntil == Self.until && info.waitingHost == "h" && info.waitingLimit == nil)
        // A server's Retry-After for the task's own request names the host as well.
        info.wait = Waiting(.retry, until: Self.until, host: "h")
        #expect(info.waiting == .retry(until: Self.until) && info.waitingHost == "h")
    }

    @Test("the JSON form of an info has the four members of a wait") func json() throws {
        var info = DownloadInfo(id: TaskID(url: "u"), url: "u", state: .idle)
        let encoder = JSONEncoder()
        encoder.outputFormatting = .sortedKeys
        encoder.dateEncodingStrategy = .secondsSince1970
        let decoder = JSONDecoder()
        decoder.dateDecodingStrategy = .secondsSince1970
        func text() throws -> String { String(decoding: try encoder.encode(info), as: UTF8.self) }
        let rest = """
            "attempts":0,"barrels":[],"bytesPerSecond":0,"count":{"isLowerBound":false,"previousReceived":0,"received":0},\
            "id":"\(info.id)","state":"idle","url":"u"
            """
        #expect(try text() == "{\(rest)}")
        info.wait = Waiting(.noSpace, until: Self.until, host: "h", limit: 2)
        #expect(
            try text()
                == "{\(rest),\"waiting\":\"no space\",\"waitingHost\":\"h\",\"waitingLimit\":2,\"waitingUntil\":1700000000}"
        )
        info.path = "/a b"
        info.fileName = "a b"
        info.error = DownloadError(.timeout, "m", retryAfter: .milliseconds(1_500))
        info.lastByteAt = Self.until
        info.barrels = ["b"]
        let read = try decoder.decode(DownloadInfo.self, from: encoder.encode(info))
        #expect(read == info && read.fileURL?.path == "/a b" && read.error?.retryAfter == .milliseconds(1_500))
    }

    @Test("the time remaining is told only while it is known") func estimate() {
        var info = DownloadInfo(id: TaskID(url: "u"), url: "u", state: .action)
        info.count = ByteCount(received: 500, expected: 1_000)
        #expect(info.estimatedTimeRemaining == nil)
        info.bytesPerSecond = 250
        #expect(info.estimatedTimeRemaining == .seconds(2))
        info.state = .complete
        #expect(info.estimatedTimeRemaining == nil)
        info.state = .action
        info.count.expected = nil
        #expect(info.estimatedTimeRemaining == nil)
        var barrel = BarrelInfo(name: "b", count: ByteCount(received: 500, expected: 1_000), total: 2)
        barrel.states = [.action: 1, .idle: 1]
        #expect(barrel.estimatedTimeRemaining == nil)
        barrel.bytesPerSecond = 100
        #expect(barrel.estimatedTimeRemaining == .seconds(5))
        barrel.count.isLowerBound = true
        #expect(barrel.estimatedTimeRemaining == .seconds(5) && !barrel.isExpectedKnown)
        barrel.unknownLengths = 1
        #expect(barrel.estimatedTimeRemaining == nil)
        barrel.unknownLengths = 0
        barrel.states = [.complete: 2]
        #expect(barrel.estimatedTimeRemaining == nil)
    }

    @Test("the time of the last byte: exact to a second while the task runs, the end of a finished one")
    func lastByte() async throws {
        let content = Bytes.pattern(count: 400_000)
        let gate = TestGate()
        let bench = try await Bench { request, _ in .file(content, to: request, gate: gate, pauseAt: 300_000) }
        let first = bench.clock.date
        let id = try await bench.add("a")
        await gate.reached()
        await bench.settle()
        #expect(await bench.messager.info(.id(id))?.lastByteAt == first)
        await bench.advance(30)
        #expect(await bench.messager.info(.id(id))?.lastByteAt == first)
        gate.open()
        let info = try #require(await bench.finished(id))
        #expect(info.lastByteAt == first + 30)
        let queued = try await bench.engine.add([bench.task("b")], barrel: nil, run: true)[0].id
        #expect(await bench.finished(queued)?.lastByteAt == first + 30)
    }

    @Test("progressInterval and distributeSpeed are one setting", arguments: 1...10)
    func interval(speed: Int) {
        var configure = Configure(workPath: URL(fileURLWithPath: "/w"))
        #expect(configure.progressInterval == .seconds(1) && configure.distributeSpeed == 5)
        configure.distributeSpeed = speed
        #expect(configure.progressInterval == .milliseconds(200 * speed))
        configure.progressInterval = .milliseconds(200 * speed)
        #expect(configure.distributeSpeed == speed)
        #expect(abs(configure.progressInterval.inSeconds - Double(speed) * 0.2) < 1e-9)
    }

    @Test("an interval between two steps stays, and its number of steps is the nearest from 1 to 10")
    func intervals() {
        var configure = Configure(workPath: URL(fileURLWithPath: "/w"))
        configure.progressInterval = .milliseconds(550)
        #expect(configure.progressInterval == .milliseconds(550) && configure.distributeSpeed == 3)
        configure.progressInterval = .zero
        #expect(configure.distributeSpeed == 1)
        configure.progressInterval = .seconds(1 << 60)
        #expect(configure.distributeSpeed == 10)
    }

    @Test("durations and seconds", arguments: [0, 0.001, 0.25, 1.5, 7, 86_400, 1e9, -3])
    func seconds(_ seconds: Double) {
        #expect(Duration(inSeconds: seconds).inSeconds == seconds)
    }

    @Test("seconds that no duration has")
    func extremes() {
        #expect(Duration(inSeconds: .nan) == .zero)
        #expect(Duration(inSeconds: .infinity) == .seconds(1e15))
        #expect(Duration(inSeconds: -.infinity) == .seconds(-1e15))
        #expect(Duration(inSeconds: .greatestFiniteMagnitude).inSeconds == 1e15)
    }
}
