import FKMiddleware
import Testing

@testable import FKCore

@Suite("Sums of a run") struct ClientRunTrackerTests {
    private func info(_ name: String, _ state: DownloadState, _ received: Int64, of expected: Int64?) -> DownloadInfo {
        DownloadInfo(
            id: TaskID(url: "http://h/\(name)", destination: nil), url: "http://h/\(name)", state: state,
            count: ByteCount(received: received, expected: expected))
    }

    @Test("a target that leaves takes its bytes out of the sums, whatever is heard of it later")
    func leave() {
        let ids = ["a", "b", "c"].map { info($0, .idle, 0, of: nil).id }
        var tracker = RunTracker(targets: Set(ids))
        _ = tracker.update(info("a", .complete, 7, of: 7))
        _ = tracker.update(info("b", .action, 3, of: 9))
        tracker.leave([ids[1], ids[2]])
        #expect(tracker.isSettled && tracker.total == 1 && tracker.received == 7 && tracker.expected == 7)
        let isCounted = tracker.update(info("b", .unknown, 0, of: nil))
        #expect(!isCounted && tracker.fraction == 1)
    }

    @Test("a target that is left out before anything was heard of it does not count, and may be heard of later")
    func untarget() {
        var tracker = RunTracker(targets: Set(["a", "b", "c"].map { info($0, .idle, 0, of: nil).id }))
        _ = tracker.update(info("a", .complete, 7, of: 7))
        tracker.untarget(["a", "b", "other"].map { info($0, .idle, 0, of: nil).id })
        #expect(tracker.total == 2 && tracker.openCount == 1)
        #expect(tracker.openIDs == [info("c", .idle, 0, of: nil).id])
        #expect(Set(tracker.ids) == Set(["a", "c"].map { info($0, .idle, 0, of: nil).id }))
        let isCounted = tracker.update(info("b", .action, 3, of: 7))
        #expect(!isCounted && tracker.received == 7)
        var place = 0
        let unheard = tracker.next(&place, atMost: 10, isUnheard: true)
        #expect(unheard == [info("c", .idle, 0, of: nil).id])
        tracker.target([info("b", .idle, 0, of: nil).id])
        _ = tracker.update(info("b", .complete, 7, of: 7))
        _ = tracker.update(info("c", .complete, 7, of: 7))
        #expect(tracker.isSettled && tracker.total == 3 && tracker.count(.complete) == 3 && tracker.received == 21)
        #expect(tracker.count(.unknown) == 0 && tracker.isComplete(info("b", .idle, 0, of: nil).id))
    }

    @Test("a file that was there before counts as received, not as fetched")
    func foreign() {
        var tracker = RunTracker()
        _ = tracker.update(info("a", .action, 0, of: nil))
        var kept = info("a", .complete, 9, of: 9)
        kept.isForeign = true
        _ = tracker.update(kept)
        _ = tracker.update(info("b", .action, 0, of: 5))
        _ = tracker.update(info("b", .complete, 5, of: 5))
        #expect(tracker.received == 14 && tracker.fetched == 5 && tracker.atStart == 9)
    }

    @Test("an info that is older than the last one is no news, so a final state is reported once")
    func order() {
        var tracker = RunTracker()
        func update(_ state: DownloadState, _ received: Int64, _ generation: UInt64, isInMemory: Bool) -> Bool {
            var info = info("a", state, received, of: 9)
            info.order = ChangeOrder(number: 4, generation: generation, isInMemory: isInMemory)
            return tracker.update(info)
        }
        var news = [update(.idle, 0, 1, isInMemory: false), update(.complete, 9, 3, isInMemory: false)]
        // The changes that led there are read after the info file.
        news += [update(.action, 0, 1, isInMemory: true), update(.action, 5, 2, isInMemory: true)]
        #expect(news == [true, true, false, false] && tracker.received == 9 && tracker.isSettled)
        news = [update(.complete, 9, 3, isInMemory: true), update(.idle, 0, 4, isInMemory: false)]
        #expect(news == [false, true] && tracker.count(.complete) == 0)
    }

    @Test("while a length is unknown the sum is a lower bound, and there is no fraction of it")
    func lowerBound() {
        var tracker = RunTracker()
        _ = tracker.update(info("a", .action, 10, of: 100))
        #expect(tracker.goal == ByteCount(received: 10, expected: 100) && tracker.isExpectedKnown)
        _ = tracker.update(info("b", .action, 10, of: 300))
        #expect(tracker.fraction == 0.1)
        tracker = RunTracker(targets: Set(["a", "b", "c", "d"].map { info($0, .idle, 0, of: nil).id }))
        _ = tracker.update(info("a", .complete, 100, of: 100))
        _ = tracker.update(info("b", .action, 10, of: nil))
        _ = tracker.update(info("c", .idle, 0, of: nil))
        #expect(tracker.goal == ByteCount(received: 110, expected: 110, isLowerBound: true))
        #expect(tracker.fraction == nil && !tracker.isExpectedKnown && tracker.total == 4)
        _ = tracker.update(info("b", .action, 10, of: 300))
        _ = tracker.update(info("c", .action, 0, of: 590))
        #expect(tracker.fraction == nil && tracker.goal.isLowerBound, "one was not heard of yet")
        _ = tracker.update(info("d", .idle, 0, of: 10))
        #expect(tracker.goal == ByteCount(received: 110, expected: 1_000) && tracker.fraction == 0.11)
    }

    @Test("the fraction of a run never falls, and is 1 only once every task is complete")
    func fraction() {
        var tracker = RunTracker()
        _ = tracker.update(info("a", .action, 60, of: 100))
        _ = tracker.update(info("b", .action, 0, of: 100))
        // The server has another version: the bytes are dropped, and its length is not known at once.
        _ = tracker.update(info("a", .action, 0, of: nil))
        #expect(tracker.fraction == 0.6 && tracker.goal.isLowerBound)
        _ = tracker.update(info("a", .action, 0, of: 400))
        #expect(tracker.fraction == 0.6 && !tracker.goal.isLowerBound)
        _ = tracker.update(info("a", .action, 400, of: 400))
        #expect(tracker.fraction == 0.8)
        _ = tracker.update(info("b", .action, 100, of: 100))
        #expect(tracker.fraction.map { $0 > 0.99 && $0 < 1 } == true, "both are being verified")
        _ = tracker.update(info("a", .complete, 400, of: 400))
        _ = tracker.update(info("b", .complete, 100, of: 100))
        #expect(tracker.fraction == 1)
    }

    @Test(
        "What was cancelled is not missed; what failed or was suspended is, and no time is left for it",
        arguments: [DownloadState.error, .cancel, .suspend, .unknown])
    func lost(state: DownloadState) {
        var tracker = RunTracker(targets: Set(["a", "b", "c"].map { info($0, .idle, 0, of: nil).id }))
        _ = tracker.update(info("a", .action, 100, of: 100))
        _ = tracker.update(info("b", .idle, 0, of: nil))
        _ = tracker.update(info("c", .action, 40, of: 100))
        _ = tracker.update(info("a", .complete, 100, of: 100))
        _ = tracker.update(info("b", state, 0, of: nil))
        _ = tracker.update(info("c", state, 40, of: 100))
        let isWanted = state == .error || state == .suspend
        // The length of what is suspended is still to be learned.
        let isOpen = state == .suspend
        #expect(
            tracker.goal == ByteCount(received: 140, expected: isWanted ? 200 : 140, isLowerBound: isOpen))
        #expect(tracker.fraction == (isOpen ? nil : isWanted ? 0.7 : 1) && tracker.rest == 0)
        #expect(tracker.isExpectedKnown == (state == .unknown))
        #expect(tracker.isSettled && tracker.count(state) == 2 && tracker.count(.action) == 0)
    }

    @Test("What was there before the run is not counted as fetched") func fetched() {
        let id = info("a", .idle, 0, of: nil).id
        var tracker = RunTracker(targets: [id])
        let infos = [
            info("a", .idle, 70, of: 100), info("a", .action, 70, of: 100), info("a", .action, 90, of: 100),
            info("other", .action, 90, of: 100),
        ]
        // The last one is no target.
        #expect(infos.map { tracker.update($0) } == [true, true, false, false])
        #expect(tracker.fetched == 20 && tracker.received == 90 && tracker.total == 1)
        // The file has changed and starts again: its first bytes arrived, too.
        _ = tracker.update(info("a", .action, 0, of: 100))
        _ = tracker.update(info("a", .complete, 100, of: 100))
        #expect(tracker.fetched == 120 && tracker.received == 100)
    }

    @Test("Bytes that were dropped or copied between two reports are known") func besides() {
        let id = info("a", .idle, 0, of: nil).id
        // 30 bytes were dropped, and the whole file came; 80 bytes of a damaged file were copied, and the others came.
        for (before, besides, fetched) in [(30, 30, 100), (0, -80, 20)] as [(Int64, Int64, Int64)] {
            var tracker = RunTracker(targets: [id])
            _ = tracker.update(info("a", .action, before, of: 100))
            var last = info("a", .complete, 100, of: 100)
            last.besides = besides
            _ = tracker.update(last)
            #expect(tracker.fetched == fetched && tracker.received == 100)
        }
    }
}
