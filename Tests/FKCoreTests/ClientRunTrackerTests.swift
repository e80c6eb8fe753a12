import FKCore
import FKMiddleware
import Testing

@Suite("Sums of a run") struct ClientRunTrackerTests {
    private func info(_ name: String, _ state: DownloadState, _ received: Int64, of expected: Int64?) -> DownloadInfo {
        DownloadInfo(
            id: TaskID(url: "http://h/\(name)", destination: nil), url: "http://h/\(name)", state: state,
            count: ByteCount(received: received, expected: expected))
    }

    @Test("Unknown lengths count as the average of the known ones") func estimate() {
        var tracker = RunTracker()
        _ = tracker.update(info("a", .action, 10, of: 100))
        _ = tracker.update(info("b", .action, 10, of: 300))
        _ = tracker.update(info("c", .idle, 0, of: nil))
        #expect(tracker.estimate == 600)
        #expect(tracker.received == 20 && tracker.total == 3)
    }

    @Test("What will not come is not waited for", arguments: [DownloadState.error, .cancel, .suspend, .unknown])
    func lost(state: DownloadState) {
        var tracker = RunTracker()
        _ = tracker.update(info("a", .action, 100, of: 100))
        _ = tracker.update(info("b", .idle, 0, of: nil))
        _ = tracker.update(info("c", .action, 40, of: 100))
        _ = tracker.update(info("a", .complete, 100, of: 100))
        _ = tracker.update(info("b", state, 0, of: nil))
        _ = tracker.update(info("c", state, 40, of: 100))
        #expect(tracker.estimate == tracker.received && tracker.received == 140)
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
    }
}
