import TestSupport
import Testing

@testable import FKCore
@testable import FKEngine
@testable import FKModel

@Suite("Limits that servers announce")
struct ServerQuotaTests {
    private static let now = Date(timeIntervalSince1970: 1_800_000_000)

    private static func fields(_ lines: KeyValuePairs<String, String>) -> RateLimitFields {
        RateLimitFields(
            ResponseHead(status: 200, fields: lines.map { .init($0.key, $0.value) }, url: "http://h/a"), now: now)
    }

    @Test("each form says how many requests are left, and for how long")
    func forms() {
        let draft = Self.fields([
            "RateLimit-Policy": "\"burst\";q=100;w=60, \"day\";q=5000;w=86400",
            "RateLimit": "\"burst\";r=50;t=30, \"day\";r=4000;pk=:AQI=:",
        ])
        #expect(draft.faults.isEmpty && draft.limits.count == 2)
        #expect(draft.limits.first == .init(name: "burst", quota: 100, remaining: 50, seconds: 30, window: 60))
        #expect(
            draft.limits.last == .init(name: "day 0102", quota: 5000, remaining: 4000, seconds: 86400, window: 86400))
        // Hugging Face's own form.
        let hub = Self.fields([
            "ratelimit": "\"resolvers\";r=2994;t=290",
            "ratelimit-policy": "\"fixed window\";\"resolvers\";q=3000;w=300",
        ])
        #expect(hub.faults.isEmpty)
        #expect(hub.limits == [.init(name: "resolvers", quota: 3000, remaining: 2994, seconds: 290, window: 300)])
        let three = RateLimitFields.Limit(name: "", quota: 100, remaining: 50, seconds: 30, window: nil)
        #expect(Self.fields(["RateLimit": "limit=100, remaining=50, reset=30"]).limits == [three])
        for prefix in ["RateLimit-", "X-RateLimit-"] {
            let limits = Self.fields([prefix + "Limit": "100", prefix + "Remaining": "50", prefix + "Reset": "30"])
                .limits
            #expect(limits == [three])
        }
        let policy = Self.fields(["RateLimit-Limit": "100, 100;w=60", "RateLimit-Remaining": "50"]).limits
        #expect(policy == [.init(name: "", quota: 100, remaining: 50, seconds: 60, window: 60)])
    }

    @Test("a reset of more than a year is a time of day, by the server's clock")
    func timeOfDay() {
        let lines: KeyValuePairs = ["X-RateLimit-Remaining": "5", "X-RateLimit-Reset": "1800000030"]
        #expect(Self.fields(lines).limits.first?.seconds == 30)
        let dated: KeyValuePairs = [
            "X-RateLimit-Remaining": "5", "X-RateLimit-Reset": "1800000030", "Date": "Fri, 15 Jan 2027 08:00:10 GMT",
        ]
        #expect(Self.fields(dated).limits.first?.seconds == 20)
    }

    @Test(
        "what is negative, malformed or years ahead is ignored and said",
        arguments: [
            ["RateLimit": "\"a\";r=-1;t=5"], ["RateLimit": "\"a\";r=1;t=-5"], ["RateLimit": "\"a\";r=1;t=99999999"],
            ["RateLimit": "\"a\";r=1"], ["RateLimit": "\"a\";r=x;t=5"], ["RateLimit": "\"a\";;"], ["RateLimit": "5"],
            ["RateLimit-Remaining": "-3", "RateLimit-Reset": "5"],
            ["RateLimit-Remaining": "many", "RateLimit-Reset": "5"],
            ["X-RateLimit-Remaining": "1", "X-RateLimit-Reset": "9999999999999"],
            ["X-RateLimit-Remaining": "1", "X-RateLimit-Reset": "1700000000"],
        ])
    func absurd(_ lines: [String: String]) {
        let fields = RateLimitFields(
            ResponseHead(status: 200, fields: lines.map { .init($0.key, $0.value) }, url: "http://h/a"), now: Self.now)
        #expect(fields.limits.isEmpty && fields.faults.count == 1, "\(fields)")
    }

    @Test("Retry-After has precedence in a 429; without it, the end of the window counts")
    func retryAfter() {
        func asked(_ lines: KeyValuePairs<String, String>) -> Duration? {
            let head = ResponseHead(status: 429, fields: lines.map { .init($0.key, $0.value) }, url: "http://h/a")
            return RetryRules.error(for: head, now: Self.now).retryAfter
        }
        #expect(asked(["RateLimit": "\"a\";r=0;t=7", "Retry-After": "3"]) == .seconds(3))
        #expect(asked(["RateLimit": "\"a\";r=0;t=7"]) == .seconds(7))
        #expect(asked(["RateLimit": "\"a\";r=2;t=7"]) == nil)
    }

    /// A server that counts requests in fixed windows.
    private struct CountingServer {
        let quota: Int
        let window: Int64
        let roundsUp: Bool
        var began: Int64 = 0
        var used = 0
        var refused = 0

        mutating func answer(at now: Int64) -> RateLimitFields.Limit {
            while now >= began + window { (began, used) = (began + window, 0) }
            if used < quota { used += 1 } else { refused += 1 }
            let left = Double(began + window - now) / 1e9
            return .init(
                name: "a", quota: Double(quota), remaining: Double(quota - used),
                seconds: left.rounded(roundsUp ? .up : .down), window: Double(window) / 1e9)
        }
    }

    private struct Flight {
        var process: Int
        /// When it reaches the server, and when its answer is there.
        var arrival: Int64
        var due: Int64
        var limit: RateLimitFields.Limit?
    }

    /// Sends files from several processes that have some connections each. A request takes 10 to 80 ms.
    ///
    /// - Returns: the seconds, and the number of requests that were refused.
    private func run(
        files: Int, processes: Int, connections: Int, roundsUp: Bool, shards: Int = 1
    ) -> (seconds: Double, refused: Int) {
        var random = SeededRandom(seed: 7)
        var server = CountingServer(quota: 100, window: 10_000_000_000, roundsUp: roundsUp)
        var quotas = [ServerQuota](repeating: ServerQuota(), count: processes)
        var flights: [Flight] = []
        var (now, left): (Int64, Int) = (0, files)
        var end: Int64 = 0
        while left > 0 || !flights.isEmpty {
            for index in flights.indices where flights[index].limit == nil && flights[index].arrival <= now {
                flights[index].limit = server.answer(at: now)
            }
            for flight in flights where flight.due <= now {
                let inFlight = flights.count { $0.process == flight.process && $0.due > now }
                quotas[flight.process].note(
                    [flight.limit].compactMap(\.self), inFlight: inFlight, now: now, longest: 600, shards: shards)
                end = now
            }
            flights.removeAll { $0.due <= now }
            for process in 0..<processes {
                while left > 0, flights.count(where: { $0.process == process }) < connections,
                    quotas[process].next(now: now) == nil
                {
                    quotas[process].sent(now: now)
                    left -= 1
                    let arrival = now + .random(in: 5_000_000...40_000_000, using: &random)
                    flights.append(
                        Flight(
                            process: process, arrival: arrival,
                            due: arrival + .random(in: 5_000_000...40_000_000, using: &random)))
                }
            }
            now += 5_000_000
        }
        return (Double(end) / 1e9, server.refused)
    }

    @Test(
        "1,000 files under a quota of 100 in 10 s end without a 429, and within 1.15 of the quota's own time",
        arguments: [true, false], [(1, 16), (1, 3), (3, 5), (4, 4), (8, 2)])
    func counted(_ roundsUp: Bool, _ clients: (processes: Int, connections: Int)) {
        let result = run(
            files: 1_000, processes: clients.processes, connections: clients.connections, roundsUp: roundsUp)
        #expect(result.refused == 0 && result.seconds <= 115, "\(result)")
    }

    @Test("four shards that divide the limits end without a 429", arguments: [true, false])
    func divided(_ roundsUp: Bool) {
        let result = run(files: 1_000, processes: 4, connections: 4, roundsUp: roundsUp, shards: 4)
        #expect(result.refused == 0 && result.seconds <= 115, "\(result)")
    }

    @Test("a quarter of the quota is spread over the rest of the window; requests in flight count as used")
    func spread() {
        var quota = ServerQuota()
        quota.note(
            [.init(name: "", quota: 100, remaining: 40, seconds: 11, window: 10)], inFlight: 15, now: 0, longest: 600)
        #expect(quota.next(now: 0) == nil)
        quota.sent(now: 0)
        // 24 are left for 10 seconds.
        #expect(quota.next(now: 0) == 416_666_666)
        quota.note(
            [.init(name: "", quota: 100, remaining: 0, seconds: 4, window: 10)], inFlight: 0, now: 0, longest: 600)
        #expect(quota.next(now: 0) == 5_000_000_000)
    }
}

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
            var answer = Bench.Answer.file(content, to: request, cut: number == 1 ? 500 : nil)
            if case .head(var head) = answer.steps[0] {
                head.fields.append(.init("RateLimit", "\"a\";r=-1;t=9"))
                answer.steps[0] = .head(head)
            }
            return answer
        }
        let id = try await bench.add("a")
        await bench.reached("a", .idle, times: 2)
        await bench.advance(60)
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
        await bench.reached("a", .idle, times: 2)
        await bench.advance(59)
        #expect(bench.transport.requests.count == 1)
        try await bench.advance(by: 61) { await bench.state(id) == .complete }
        #expect(await bench.finished(id)?.state == .complete)
        #expect(try bench.out("a") == large)
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
