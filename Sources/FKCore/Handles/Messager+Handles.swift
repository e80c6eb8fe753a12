import FKEngine
import FKMiddleware
import Foundation

/// What handles and models need beside the public questions.
extension Messager {
    /// The infos of a task without an end: also those after it has ended and was queued again. A slow reader receives the
    /// newest. It ends at once if the downloader is closed.
    func changes(_ selector: TaskSelector) -> AsyncStream<DownloadInfo> {
        sequence(.firstAndNewest) { engine, yield, _ in try await engine.observe(selector.selector, end: nil, yield) }
    }

    /// The sums of a barrel without an end; otherwise like `changes(_:)`.
    func changes(ofBarrel name: String) -> AsyncStream<BarrelInfo> {
        sequence(.firstAndNewest) { engine, yield, _ in try await engine.observeBarrel(name, end: nil, yield) }
    }

    /// The sum with the number of files that are gone, which is counted where all members are complete.
    func lookingForFiles(_ sum: BarrelInfo) async -> BarrelInfo {
        guard sum.isComplete else { return sum }
        var sum = sum
        let lost = await all(.barrel(sum.name)).reduce(0) { $0 + ($1.hasLostFile ? 1 : 0) }
        if lost > 0 { sum.lostFiles = lost }
        return sum
    }
}
