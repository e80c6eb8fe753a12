import TestSupport
import Testing

/// In which state of a download a server begins to answer its range requests wrongly.
struct RangeShape: Sendable, CustomTestStringConvertible {
    /// Connections for the file, and ranges of it where the server's validator allows more than one.
    var segments: Int
    /// True: the first connection runs, the further ones get the wrong answers. False: all ranges were begun, the task
    /// was suspended, and the answers are wrong when it goes on.
    var isRunning: Bool
    /// Every answer is wrong, or only the first one.
    var isStubborn: Bool

    var testDescription: String {
        "\(segments) segments, \(isRunning ? "running" : "resumed"), wrong \(isStubborn ? "always" : "once")"
    }

    /// With 16 segments a file has 20 MiB: one manner of lying is enough there.
    static let all: [RangeShape] = [
        (1, false, true), (1, false, false), (4, true, true), (4, true, false), (4, false, true), (4, false, false),
        (16, true, true), (16, false, true),
    ].map { RangeShape(segments: $0, isRunning: $1, isStubborn: $2) }
    static let resumed = all.filter { !$0.isRunning }
}

/// The file before and after the fault. Files for several segments have room for as many pieces of 1 MiB.
enum RangeContent {
    static func before(_ segments: Int) -> [UInt8] { segments == 1 ? small : segments == 4 ? medium : large }
    /// Another file, of another length where `difference` is not 0.
    static func after(_ segments: Int, _ difference: Int) -> [UInt8] {
        let other = segments == 1 ? otherSmall : segments == 4 ? otherMedium : otherLarge
        return Array(other.dropLast(slack - difference))
    }

    /// What a file may be longer than the one before it.
    static let slack = 1_000
    private static let small = Bytes.pattern(count: 400_000)
    private static let medium = Bytes.pattern(count: 5 << 20)
    private static let large = Bytes.pattern(count: 20 << 20)
    private static let otherSmall = Bytes.pattern(count: 400_000 + slack, seed: 2)
    private static let otherMedium = Bytes.pattern(count: 5 << 20 + slack, seed: 2)
    private static let otherLarge = Bytes.pattern(count: 20 << 20 + slack, seed: 2)
}

/// One file of a real server, fetched by the real engine over libcurl. The server answers honestly until the ranges are
/// begun, and lies from then on.
///
/// Whatever it says: in the end there is the whole file as the server has it, or an error and nothing under its name.
struct RangeScene: Sendable {
    typealias Answer = @Sendable (_ body: [UInt8], _ request: FaultRequest) -> FaultResponse

    struct Result: Sendable {
        var info: DownloadInfo
        var history: [String]
        var requests: [FaultRequest]
        /// The requests from the first lie on.
        var later: ArraySlice<FaultRequest>
    }

    var shape: RangeShape
    /// How the server presents the file when it does not lie; by default as it should be, under a strong ETag.
    var honest: Answer = { .ranged($0, for: $1, etag: "\"1\"") }
    /// False where the file has no strong validator: it is then fetched in one piece whatever is allowed.
    var isDivided = true
    /// The file on the server once it lies; nil: still the same.
    var after: [UInt8]?
    /// How it is presented then; nil: as before.
    var honestAfter: Answer?
    /// The lie, to a request with a Range.
    var lie: Answer
    var options: @Sendable (inout TaskOptions) -> Void = { _ in }

    /// Bytes of each answer that arrive before the ranges rest.
    private static let held = 100_000
    private var ranges: Int { isDivided ? shape.segments : 1 }

    func run() async throws -> Result {
        let before = RangeContent.before(shape.segments)
        let server = try FaultServer()
        let isLying = Observed(false)
        let lies = Observed(0)
        let others = Gate()
        let scene = self
        server.route("/a") { request in
            guard isLying.value || (scene.shape.isRunning && request.index > 0) else {
                return scene.honest(before, request).stalling(at: Self.held, until: others)
            }
            let now = scene.after ?? before
            guard request["Range"] != nil else { return (scene.honestAfter ?? scene.honest)(now, request) }
            let number = lies.next()
            if number >= scene.ranges - 1 { others.open() }
            return scene.shape.isStubborn || number == 1
                ? scene.lie(now, request) : (scene.honestAfter ?? scene.honest)(now, request)
        }
        let live = try LiveBench { $0.connections = .fixed(shape.segments) }
        if ranges == 1 && shape.isRunning { others.open() }
        let id = try await live.add(server.url("/a"), options)
        if !shape.isRunning {
            try await rest(id, live)
            isLying.update { $0 = true }
            try await live.downloader.control.resume(.id(id))
        }
        let info = try #require(await live.downloader.messager.finished(id))
        try check(info, live, [after ?? before] + (shape.isRunning ? [before] : []))
        let record = try #require(try await live.engine.record(id))
        await live.downloader.close()
        let requests = server.requests
        return Result(
            info: info, history: record.history.map(\.what), requests: requests,
            later: requests.dropFirst(shape.isRunning ? 1 : ranges))
    }

    /// Suspends the task once every range of it was begun.
    private func rest(_ id: TaskID, _ live: LiveBench) async throws {
        let total = Int64(ranges * Self.held)
        try await live.received(total, of: id)
        try await live.downloader.control.suspend(.id(id))
        let record = try #require(try await live.engine.record(id))
        #expect(record.ranges.count == ranges)
    }

    /// - Parameter whole: what the file may be. A first connection that still runs brings the version it began with.
    private func check(_ info: DownloadInfo, _ live: LiveBench, _ whole: [[UInt8]]) throws {
        if info.state == .complete {
            #expect(live.names == ["a"])
            let bytes = try live.out("a")
            #expect(whole.contains { $0 == bytes }, "the file is none that the server has")
        } else {
            #expect(info.state == .error)
            #expect(live.names.allSatisfy { $0.hasPrefix(".") }, "\(live.names)")
        }
    }
}
