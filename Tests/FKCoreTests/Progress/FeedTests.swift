import TestSupport
import Testing

@testable import FKCore

@Suite("The feed of all tasks")
struct FeedTests {
    static let content = Bytes.pattern(count: 400_000)

    /// What a reader has heard.
    private struct Heard: Sendable {
        var all: [[TaskID]] = []
        var states: [TaskID: [DownloadState]] = [:]
        var received: [Int64] = []
        var isOver = false

        mutating func absorb(_ report: TaskFeed.Element) {
            switch report {
            case .all(let infos):
                all.append(infos.map(\.id))
                for info in infos where states[info.id]?.last != info.state {
                    states[info.id, default: []].append(info.state)
                }
            case .changed(let infos): for info in infos { states[info.id, default: []].append(info.state) }
            case .progress(let infos):
                for info in infos { #expect(states[info.id]?.last == .action, "a change has named each") }
                received += infos.map(\.count.received)
            }
        }
    }

    private static func read(_ downloader: Downloader) -> (Observed<Heard>, Task<Void, Never>) {
        let (heard, feed) = (Observed(Heard()), downloader.feed(every: .milliseconds(50)))
        let reader = Task {
            for await report in feed { heard.update { $0.absorb(report) } }
            heard.update { $0.isOver = true }
        }
        return (heard, reader)
    }

    @Test("it has all tasks first, then each change once and the progress, and ends when the downloader closes")
    func course() async throws {
        let gate = TestGate()
        let bench = try await Bench { request, number in
            number == 1
                ? .file(Self.content, to: request)
                : .file(Self.content, to: request, gate: gate, pauseAt: 100_000)
        }
        let first = try await bench.completed("a")
        let (heard, _) = Self.read(bench.downloader)
        _ = await heard.wait { !$0.all.isEmpty }
        let second = try await bench.add("b")
        await gate.reached()
        _ = await heard.wait { $0.received.contains(100_000) }
        gate.open()
        _ = await heard.wait { $0.states[second]?.last == .complete }
        try await bench.control.trash(.id(first))
        _ = await heard.wait { $0.states[first] == [.complete, .unknown] }
        await bench.downloader.close()
        let end = await heard.wait { $0.isOver }
        #expect(end.all == [[first]])
        #expect(end.states[second] == [.idle, .action, .complete])
    }

    @Test("it ends when the downloader closes, however long its interval is; listening to owners ends at once then")
    func longInterval() async throws {
        let bench = try await Bench { request, _ in .file(Self.content, to: request) }
        let begun = Observed(0)
        let readers = [Duration.seconds(3_600), .seconds(Int64.max)].map { interval in
            Task { [feed = bench.downloader.feed(every: interval)] in for await _ in feed { begun.update { $0 += 1 } } }
        }
        // All tasks, and the first progress.
        _ = await begun.wait { $0 >= 4 }
        await bench.downloader.close()
        for reader in readers { await reader.value }
        for await owner in bench.downloader.owners { Issue.record("\(owner)") }
    }

    @Test("a client hears the same, and what was missed is reported as all tasks again")
    func client() async throws {
        let gate = TestGate()
        let bench = try await Bench(ticks: true) { request, _ in
            .file(Self.content, to: request, gate: gate, pauseAt: 100_000)
        }
        let first = try await bench.add("a")
        await gate.reached()
        let client = try Downloader(Configure(workPath: bench.folder.file("work")), role: .client)
        client.activateQueue()
        let (heard, reader) = Self.read(client)
        _ = await heard.wait { $0.received.contains(100_000) }
        gate.open()
        let end = await heard.wait { $0.states[first]?.last == .complete }
        #expect(end.all.allSatisfy { $0 == [first] } && end.states[first]?.filter { $0 == .complete }.count == 1)
        reader.cancel()
        _ = await heard.wait { $0.isOver }

        var feed = client.feed(every: .milliseconds(50)).makeAsyncIterator()
        let (one, two) = (await feed.next(isolation: nil), await feed.next(isolation: nil))
        feed.miss()
        let three = await feed.next(isolation: nil)
        guard case .all(let before)? = one, case .progress(let running)? = two, case .all(let after)? = three else {
            Issue.record("\(String(describing: (one, two, three)))")
            return
        }
        #expect(before.map(\.id) == [first] && running.isEmpty && after.map(\.id) == [first])
        // What is older than the list, or says nothing new, is no change.
        feed.add(before)
        var gone = before[0]
        gone.state = .unknown
        gone.order = .unknown
        feed.add([gone])
        var change: [DownloadState]?
        while change == nil, let report = await feed.next(isolation: nil) {
            if case .changed(let infos) = report { change = infos.map(\.state) }
        }
        #expect(change == [.unknown])
        await client.close()
        #expect(await feed.next(isolation: nil) == nil)
    }
}
