import TestSupport
import Testing

@testable import FKEngine

@Suite("Connections and pauses of hosts")
struct HostBudgetTests {
    private let date = Date(timeIntervalSince1970: 1_800_000_000)

    @Test("a later, shorter Retry-After leaves a longer pause as it is; a longer one replaces it")
    func longest() {
        var budget = HostBudget(limit: 1)
        let changes = [
            budget.pause("a", seconds: 40, now: 0, date: date),
            budget.pause("a", seconds: 5, now: 1_000_000_000, date: date + 1),
            budget.pause("a", seconds: 39, now: 1_000_000_000, date: date + 1),
        ]
        #expect(changes == [true, false, false])
        #expect(budget.pauses["a"] == .init(until: 40_000_000_000, date: date + 40, seconds: 40))
        budget.pause("a", seconds: 60, now: 2_000_000_000, date: date + 2)
        #expect(budget.nextEnd == 62_000_000_000)
        #expect(budget.isOpen("b", now: 3_000_000_000))
    }

    @Test("a pause that is past, of no time or of no number of seconds changes nothing", arguments: [0, -1, -1e300])
    func past(_ seconds: Double) {
        var budget = HostBudget(limit: 1)
        let isChanged = budget.pause("a", seconds: seconds, now: 5, date: date)
        #expect(!isChanged && budget.pauses.isEmpty && budget.isOpen("a", now: 5))
    }

    @Test("a pause beyond all bounds does not overflow")
    func huge() {
        var budget = HostBudget(limit: 1)
        budget.pause("a", seconds: .greatestFiniteMagnitude, now: 1 << 50, date: date)
        #expect(!budget.isOpen("a", now: 1 << 51))
    }

    @Test("a lowered limit ends nothing, says how many are too many, and lets nobody in before they have ended")
    func lowered() throws {
        var budget = HostBudget(limit: 3)
        var permits = Permits()
        for _ in 0..<3 { permits.add(budget.acquire("a", now: 0)) }
        #expect(budget.obstacle("a", now: 0) == .full(limit: 3))
        budget.limit = 1
        #expect(budget.excess.map(\.count) == [2] && budget.excess.map(\.host) == ["a"])
        for _ in 0..<2 { permits.release(first: "a", &budget) }
        #expect(budget.excess.isEmpty && budget.obstacle("a", now: 0) == .full(limit: 1))
        permits.release(first: "a", &budget)
        #expect(budget.isOpen("a", now: 0) && budget.connections.isEmpty)
    }

    /// Permits cannot stand in an array: each in a box of its own.
    private struct Permits {
        final class Box {
            var permit: HostPermit?
            let host: String
            init(_ permit: consuming HostPermit) {
                host = permit.host
                self.permit = consume permit
            }
        }
        var held: [Box] = []

        @discardableResult
        mutating func add(_ permit: consuming HostPermit?) -> Bool {
            guard let permit else { return false }
            held.append(Box(permit))
            return true
        }

        @discardableResult
        mutating func release(first host: String, _ budget: inout HostBudget) -> Bool {
            guard let place = held.firstIndex(where: { $0.host == host }),
                let permit = held.remove(at: place).permit.take()
            else { return false }
            budget.release(permit)
            return true
        }
    }

    @Test("random events against a simple model: never more than the limit, never during a pause, nothing left over")
    func model() {
        var random = SeededRandom(seed: 113)
        for _ in 0..<200 {
            var limit = Int.random(in: 1...4, using: &random)
            var budget = HostBudget(limit: limit)
            var permits = Permits()
            var pausedUntil: [String: Int64] = [:]
            var now: Int64 = 0
            for _ in 0..<200 {
                let host = ["a", "b", "c"].randomElement(using: &random)!
                let used = permits.held.count { $0.host == host }
                switch Int.random(in: 0..<6, using: &random) {
                case 0, 1, 2:
                    let isFree = used < limit && pausedUntil[host, default: 0] <= now
                    #expect(budget.isOpen(host, now: now) == isFree)
                    let isIn = permits.add(budget.acquire(host, now: now))
                    #expect(isIn == isFree)
                case 3: permits.release(first: host, &budget)
                case 4:
                    let seconds = Int64.random(in: -2...9, using: &random)
                    let until = max(pausedUntil[host, default: 0], now + seconds * 1_000_000_000)
                    if seconds > 0 { pausedUntil[host] = until }
                    budget.pause(host, seconds: Double(seconds), now: now, date: date)
                default:
                    now += Int64.random(in: 0...3_000_000_000, using: &random)
                    if Bool.random(using: &random) { budget.endPauses(now: now) }
                    limit = Int.random(in: 1...4, using: &random)
                    budget.limit = limit
                }
                for host in ["a", "b", "c"] {
                    #expect(budget.connections[host, default: 0] == permits.held.count { $0.host == host })
                }
            }
            for host in ["a", "b", "c"] { while permits.release(first: host, &budget) {} }
            #expect(budget.connections.isEmpty)
        }
    }

    @Test("hosts that speak HTTP/2 are remembered, but not without bound; one that is in use is not forgotten")
    func shared() {
        var budget = HostBudget(limit: 1)
        var permits = Permits()
        permits.add(budget.acquire("busy", now: 0))
        budget.recordShared("busy")
        for index in 0..<5_000 { budget.recordShared("h\(index)") }
        let shared = (0..<5_000).count { budget.isShared("h\($0)") }
        #expect(shared < HostBudget.maxSharedHosts)
        #expect(budget.isShared("busy") && budget.isShared("h4999") && !budget.isShared("h0"))
        permits.release(first: "busy", &budget)
    }

    @Test(
        "one server has one name, however its URL is written",
        arguments: [
            (["http://Example.COM/a", "http://example.com:80/b", "http://u:p@example.com./c"], "http://example.com"),
            (["http://example.com.:8080/", "http://EXAMPLE.com:8080/x?y"], "http://example.com:8080"),
            (["https://[::1]/a", "https://[0:0:0:0:0:0:0:1]:443/b", "https://[0::0001]/c"], "https://[::1]"),
            (["http://[FE80::1%25eth0]/a", "http://[fe80:0::1%25eth0]:80/"], "http://[fe80::1%25eth0]"),
            (["http://bücher.example/a", "http://xn--bcher-kva.example./b"], "http://xn--bcher-kva.example"),
        ])
    func names(_ urls: [String], _ site: String) throws {
        for url in urls {
            #expect((try url.normalizedURL()).site == site)
            #expect(url.normalizedSite == site)
        }
        #expect(site.shownSite == String(site.split(separator: "/")[1]))
    }
}
