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
        #expect(budget.takeTurn("http://a", for: slow, now: 0) == nil)
        #expect(budget.takeTurn("http://a", now: 0) == nil && budget.takeTurn("http://b", for: slow, now: 0) == nil)
        let turn = HostBudget.Turn(until: 3_050_000_000, policy: "--rate 20/m")
        // The scheme makes no difference, the port does.
        #expect(budget.obstacle("https://a", for: other, now: 1) == .paced(turn))
        #expect(budget.obstacle("http://a:81", for: other, now: 1) == nil)
        #expect(budget.takeTurn("http://a", for: slow, now: 3_049_999_999) == turn)
        #expect(budget.takeTurn("http://a", for: other, now: 3_050_000_000) == nil)
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
        let gate = FakeGate()
        let content = content
        let bench = try await Bench { request, _ in
            Bench.Answer([.wait(gate)] + Bench.Answer.file(content, to: request).steps)
        }
        try HostPolicyFile.write(
            [HostPolicy("h.example", connections: 1, contact: "me@lab.example")], in: bench.workPath)
        await bench.advance(1)
        for name in ["a", "b"] { try await bench.add(name) }
        await bench.settle()
        #expect(bench.transport.requests.count == 1)
        #expect(bench.sent("User-Agent").allSatisfy { $0.hasSuffix("(me@lab.example)") })
        gate.open()
        await bench.engine.waitUntilDrained()
        #expect(bench.transport.requests.count == 2)
    }
}
