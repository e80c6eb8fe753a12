import TestSupport
import Testing

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
                quotas[flight.process].record(
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
        quota.record(
            [.init(name: "", quota: 100, remaining: 40, seconds: 11, window: 10)], inFlight: 15, now: 0, longest: 600)
        #expect(quota.next(now: 0) == nil)
        quota.sent(now: 0)
        // 24 are left for 10 seconds.
        #expect(quota.next(now: 0) == 416_666_666)
        quota.record(
            [.init(name: "", quota: 100, remaining: 0, seconds: 4, window: 10)], inFlight: 0, now: 0, longest: 600)
        #expect(quota.next(now: 0) == 5_000_000_000)
    }
}
