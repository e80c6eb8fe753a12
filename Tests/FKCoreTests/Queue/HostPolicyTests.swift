import TestSupport
import Testing

@testable import FKEngine
@testable import FKModel

@Suite("Policies of hosts")
struct HostPolicyTests {
    @Test("the nearest pattern wins, each field by itself")
    func nearest() {
        let policies = HostPolicies([
            HostPolicy("*.example", connections: 8, rateLimit: 100, contact: "a@example"),
            HostPolicy("*.b.example", connections: 4, requestRate: RequestRate(3, per: .second)),
            HostPolicy("A.B.example", connections: 1),
        ])
        let near = policies.rules(for: "https://a.b.example:8443", shards: 1)
        #expect(near.connections?.value == 1 && near.rateLimit == 100 && near.contact == "a@example")
        #expect(near.interval?.policy == "*.b.example: 3 requests a second")
        #expect(policies.rules(for: "http://b.example", shards: 1).connections?.value == 8)
        #expect(policies.rules(for: "http://example", shards: 1) == HostRules())
        #expect(policies.rules(for: "http://[::1]:80", shards: 1) == HostRules())
    }

    @Test("what is no policy is refused", arguments: ["", "*", "*.", "a/b", "http://a", "a:80", "*.*.a", "a b"])
    func refused(_ pattern: String) {
        #expect(HostPolicy(pattern).fault != nil)
        #expect(throws: DownloadError.self) {
            var configure = Configure()
            configure.hosts = [HostPolicy(pattern)]
            try configure.validate()
        }
    }

    @Test("a rate is a number and a time", arguments: ["3/s", "20/m", "1000/h"])
    func rates(_ text: String) { #expect(RequestRate(text)?.text == text) }

    @Test(
        "other texts are no rate",
        arguments: ["", "3", "/s", "0/s", "-1/s", "+1/s", "3/d", "1.5/s", "3/s/s", "1000001/s"])
    func noRates(_ text: String) { #expect(RequestRate(text) == nil) }

    private let content = Bytes.pattern(count: 1_000)

    @Test("a host with 20 requests a minute is asked once in 3 seconds, also by the next engine")
    func paced() async throws {
        let folder = try TemporaryFolder()
        let clock = ManualClock()
        for name in ["a", "b"] {
            let bench = try await Bench(
                in: folder, clock: clock, content: content,
                settings: { $0.hosts = [HostPolicy("h.example", requestRate: RequestRate(20, per: .minute))] })
            let id = try await bench.add(name)
            await bench.settle()
            if name == "b" {
                #expect(bench.transport.requests.isEmpty)
                #expect(await bench.messager.info(.id(id))?.waitingPolicy == "h.example: 20 requests a minute")
                await bench.advance(2.9)
                #expect(bench.transport.requests.isEmpty)
                await bench.advance(0.2)
            }
            #expect(await bench.finished(id)?.state == .complete)
            #expect(bench.transport.requests.count == 1)
            await bench.engine.close()
        }
    }

    @Test("the limit that a redirect announces is that of the host which redirects, and not of its target")
    func redirected() async throws {
        let bench = try await Bench(settings: { $0.maxAction = 1 }) { request, number in
            var answer = Bench.Answer.file(content, to: request)
            if number == 1, case .head(var head) = answer.steps[0] {
                (head.url, head.redirects) = ("http://cdn.example/x", 1)
                head.carried = [.init("RateLimit", "\"a\";r=0;t=30"), .init("RateLimit-Policy", "\"a\";q=9;w=60")]
                answer.steps[0] = .head(head)
            }
            return answer
        }
        try await bench.completed("first")
        try await bench.completed("http://cdn.example/free")
        let held = try await bench.add("held")
        await bench.settle()
        #expect(await bench.messager.info(.id(held))?.waitingPolicy == "the server allows 9 requests in 60 s")
        await bench.advance(31)
        #expect(await bench.finished(held)?.state == .complete)
        let history = try await bench.record(held).history
        #expect(history.isEmpty, "\(history)")
    }

    @Test("an impossible limit is said once in the history, and holds nothing back")
    func impossible() async throws {
        let bench = try await Bench { request, number in
            .file(content, to: request, cut: number == 1 ? 500 : nil, fields: [.init("RateLimit", "\"a\";r=-1;t=9")])
        }
        let id = try await bench.add("a")
        await bench.retried("a", after: 60)
        #expect(await bench.finished(id)?.state == .complete)
        let faults = try await bench.record(id).history.filter { $0.by == "limit" }.map(\.what)
        #expect(faults == ["RateLimit \"a\" has an impossible value: ignored"])
    }

    @Test("every request counts: the ranges of one file wait for their turns as well")
    func ranges() async throws {
        let large = Bytes.pattern(count: 8 << 20)
        let bench = try await Bench(
            settings: {
                $0.connections = .fixed(4)
                $0.hosts = [HostPolicy("h.example", requestRate: RequestRate(1, per: .minute))]
            }
        ) { request, number in .file(large, to: request, cut: number == 1 ? 1 << 20 : nil) }
        let id = try await bench.add("a")
        await bench.retried("a", after: 59)
        #expect(bench.transport.requests.count == 1)
        try await bench.advance(by: 61) { await bench.state(id) == .complete }
        try await bench.expect("a", large, of: id)
    }

    @Test("the limits of a command hold its own tasks alone, per host; those of two commands with one rate are one")
    func ofCommands() {
        var budget = HostBudget(limit: 16)
        let slow = HostAsker(group: 1, connections: 2, requestRate: RequestRate(20, per: .minute))
        let other = HostAsker(group: 2, requestRate: RequestRate(20, per: .minute))
        #expect(budget.acquireTurn("http://a", for: slow, now: 0) == nil)
        #expect(
            budget.acquireTurn("http://a", now: 0) == nil && budget.acquireTurn("http://b", for: slow, now: 0) == nil)
        let turn = HostBudget.Turn(until: 3_050_000_000, policy: "--rate 20/m")
        // The scheme makes no difference, the port does.
        #expect(budget.obstacle("https://a", for: other, now: 1) == .paced(turn))
        #expect(budget.obstacle("http://a:81", for: other, now: 1) == nil)
        #expect(budget.acquireTurn("http://a", for: slow, now: 3_049_999_999) == turn)
        #expect(budget.acquireTurn("http://a", for: other, now: 3_050_000_000) == nil)
        var held: [HostPermitBox] = []
        for _ in 0..<2 { held.append(HostPermitBox(budget.acquire("http://c", for: slow, now: 0))) }
        #expect(budget.obstacle("http://c", for: slow, now: 0) == .full(limit: 2, policy: "--per-host 2"))
        #expect(budget.isOpen("http://c", now: 0))
        if let permit = held[0].permit.take() { budget.release(permit) }
        #expect(budget.isOpen("http://c", for: slow, now: 0))
    }

    private final class HostPermitBox {
        var permit: HostPermit?
        init(_ permit: consuming HostPermit?) { self.permit = consume permit }
    }

    @Test("shards that divide the limits have a part each, at least one connection", arguments: [1, 4, 100])
    func divided(_ shards: Int) {
        let policies = HostPolicies([
            HostPolicy("a", connections: 8, requestRate: RequestRate(10, per: .second), rateLimit: 1_000)
        ])
        let rules = policies.rules(for: "http://a", shards: shards)
        #expect(rules.connections?.value == max(1, 8 / shards))
        #expect(rules.rateLimit == 1_000 / Int64(shards))
        #expect(rules.interval?.value == 105_000_000 * Int64(shards))
    }

    @Test("a policy that another process writes applies to a running engine, with its connections and its contact")
    func written() async throws {
        let gate = TestGate()
        let content = content
        let bench = try await Bench { request, _ in
            Bench.Answer([.wait(gate)] + Bench.Answer.file(content, to: request).steps)
        }
        try HostPolicy.write([HostPolicy("h.example", connections: 1, contact: "me@lab.example")], in: bench.workPath)
        await bench.advance(1)
        for name in ["a", "b"] { try await bench.add(name) }
        await bench.settle()
        #expect(bench.transport.requests.count == 1)
        #expect(bench.sent("User-Agent").allSatisfy { $0.hasSuffix("(me@lab.example)") })
        gate.open()
        await bench.engine.waitUntilDrained()
        #expect(bench.transport.requests.count == 2)
    }

    // MARK: Mirrors

    @Test(
        "an address of a host with a mirror is rewritten, without its secrets",
        arguments: [
            ("https://hub.example/a/b?v=1", "https://m.example/base/a/b?v=1"),
            ("https://me:pw@hub.example/a?token=x&v=1", "https://m.example/base/a?v=1"),
            ("http://hub.example:8080/?sig=x", "https://m.example/base/"),
            ("https://cdn.hub.example/a", "https://cdn.hub.example/a"),
            ("https://m.example/base/a?token=x", "https://m.example/base/a?token=x"),
        ])
    func rewritten(_ url: String, _ expected: String) {
        let policies = HostPolicies([
            HostPolicy("hub.example", mirror: "https://m.example/base/"),
            HostPolicy("m.example", mirror: "https://m.example/other"),
        ])
        #expect(policies.mirrored(url) == expected)
        #expect(HostPolicies([HostPolicy("hub.example", connections: 1)]).mirrored(url) == url)
    }

    @Test(
        "what is no mirror is refused",
        arguments: [
            "", "m.example", "ftp://m.example", "https://me:pw@m.example/", "https://m.example/?a", "https:///a",
        ])
    func noMirror(_ text: String) {
        #expect(HostPolicy.mirrorBase(text) == nil && HostPolicy("a", mirror: text).fault != nil)
    }

    @Test("requests to a host go to its mirror, which gets no secret; the task stays the one of the host")
    func mirrored() async throws {
        let bench = try await Bench(
            content: content, settings: { $0.hosts = [HostPolicy("h.example", mirror: "https://m.example/base")] })
        let id = try await bench.completed("dir/a") {
            $0.options.headers = [.init("Authorization", "Basic c2VjcmV0"), .init("X-Plain", "1")]
        }
        #expect(bench.transport.requests.map { $0.urlRequest.url?.absoluteString } == ["https://m.example/base/dir/a"])
        #expect(bench.sent("Authorization") == ["-"] && bench.sent("X-Plain") == ["1"])
        let record = try await bench.record(id)
        #expect(record.task.url == "http://h.example/dir/a" && id == bench.task("dir/a").id)
        #expect(
            record.history.map(\.what) == [
                "requests to h.example go to https://m.example/base, by the policy of h.example"
            ])
    }

    @Test(
        "bytes of a host and of its mirror are joined only if something proves that they are of one file",
        arguments: [true, false])
    func joined(isSame: Bool) async throws {
        let content = Bytes.pattern(count: 400_000)
        let other = isSame ? content : content.map { ~$0 }
        let bench = try await Bench { request, _ in
            request.urlRequest.url?.host == "m.example"
                ? .file(other, etag: isSame ? "\"a\"" : "\"b\"", to: request)
                : .file(content, etag: "\"a\"", to: request, cut: 200_000)
        }
        let id = try await bench.add("a")
        await bench.reached("a", .idle, times: 2)
        try HostPolicy.write([HostPolicy("h.example", mirror: "http://m.example")], in: bench.workPath)
        try await bench.advance(by: 1) { await bench.state(id) == .complete }
        #expect(bench.hosts.first == "h.example" && !bench.hosts.dropFirst().contains("h.example"))
        try await bench.expect("a", other, of: id)
        let history = try await bench.record(id).history.map(\.what)
        #expect(history.contains { $0.contains("dropped") } == !isSame, "\(history)")
    }

    // MARK: Statuses

    @Test(
        "a status that the policy names is retried as a 503 is, and no other; a signed or resumed one is not asked at once"
    )
    func retriedStatuses() async throws {
        let bench = try await Bench(settings: {
            $0.retry.maxAttempts = 2
            $0.hosts = [HostPolicy("h.example", retryStatuses: [403])]
        }) { [content] request, number in
            request.urlRequest.url?.lastPathComponent == "b"
                ? .status(404) : number == 1 ? .status(403) : .file(content, to: request)
        }
        let id = try await bench.add("a?token=1")
        await bench.reached("a?token=1", .idle, times: 2)
        #expect(bench.transport.requests.count == 1)
        try await bench.advance(by: 1) { await bench.state(id) == .complete }
        #expect(try await bench.record(id).history.first?.what == "the policy of h.example says that 403 is retried")
        let other = try await bench.add("b")
        #expect(await bench.finished(other)?.state == .error)
        #expect(bench.asked.count { $0 == "b" } == 1)
        #expect(
            HostPolicy("a", retryStatuses: [200]).fault != nil && HostPolicy("a", retryStatuses: [600]).fault != nil)
    }
}
