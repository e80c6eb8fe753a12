import FKEngine
import FKMiddleware
import Foundation

/// Foundation's `Progress` for tasks, barrels and all tasks (MCDownloadManager).
extension Messager {
    /// A `Progress` that follows a task and can control it. Its unit is bytes.
    ///
    /// - `totalUnitCount` is -1, and the progress indeterminate, until the length is known. `isFinished` becomes true
    ///   when the file is complete and not earlier: one unit is held back while the last bytes are verified. An empty
    ///   file counts as one unit, because Foundation takes 0 of 0 as unfinished.
    /// - `kind` is `.file`, the operation `.downloading`. `userInfo` contains the throughput and the remaining time
    ///   while the task runs, and the file URL once it is complete.
    /// - `pause()`, `resume()` and `cancel()`, also of a parent, give the task the verbs suspend, resume and cancel.
    ///   A task that is suspended elsewhere becomes `isPaused`, one that is cancelled or trashed becomes
    ///   `isCancelled`. A failed task is neither: the progress stops, and continues when the task is queued again.
    ///
    /// The progress follows the task until the task is complete or cancelled, or until the progress is released. It
    /// retains neither the downloader nor, after `close()`, the work path.
    ///
    /// Outside Apple's systems, Foundation's `Progress` is not safe to use from several threads. Every change is made
    /// on `queue`: pass the queue on which the progress and its parents are read, for example `.main`.
    ///
    /// - Parameters:
    ///   - selector: for several tasks of one URL, the oldest is followed. For a barrel and for `.all` it is their sum, see below.
    ///   - queue: a serial queue; nil, the default, uses one queue of the library for all progresses.
    /// - Throws: `.notFound` if there is no such task or barrel, `.invalidURL` for an invalid URL, `.cancelled` for a closed
    ///   downloader.
    ///
    /// The progress of a barrel or of all tasks is indeterminate until the lengths of all of them are known. Then it shows
    /// `BarrelInfo.fraction`, which never decreases: after bytes were discarded, its completed units exceed the stored bytes. It is
    /// finished if every task is complete, paused if none is running or waiting and one is suspended, and cancelled if all that
    /// are not complete are cancelled. `userInfo` counts the files. Verbs apply to all of them.
    public func progress(
        _ selector: some TaskSelecting, on queue: DispatchQueue? = nil
    ) async throws(DownloadError) -> Progress {
        let asked = selector.selector
        let target: TaskSelector
        let first: ProgressSnapshot
        switch asked.kind {
        case .barrel(let name): (target, first) = (asked, .init(try await barrelInfo(name)))
        case .all: (target, first) = (asked, .init(BarrelInfo(name: "")))
        case .url, .id, .state:
            guard let info = try await typed({ try await engine.snapshot { try $0.infos(asked).first } }) else {
                throw DownloadError(.notFound, "There is no task \(asked.name).")
            }
            (target, first) = (.id(info.id), .init(info))
        }
        let link = ProgressLink(engine, target, queue)
        let progress = await link.begin(first)
        let number = try await typed {
            switch target.kind {
            case .barrel(let name):
                return try await engine.observeBarrel(name) { [weak link] info in link?.update(.init(info)) }
            case .all: return try await engine.observeTotal { [weak link] info in link?.update(.init(info)) }
            case .url, .id, .state:
                return try await engine.observe(target) { [weak link] info in link?.update(.init(info)) }
            }
        }
        await link.follow(number)
        return progress
    }
}

/// The values that a `Progress` shows for a task or barrel.
struct ProgressSnapshot: Sendable {
    var received: Int64
    var expected: Int64?
    /// The minimum fraction to show for a barrel.
    var fraction: Double?
    var bytesPerSecond: Double
    /// The remaining seconds at the current speed; nil while unknown.
    var remainingTime: Double?
    var isComplete: Bool
    var isPaused: Bool
    var isCancelled: Bool
    var path: String?
    /// The complete members and all members of a barrel; nil for a task.
    var files: (complete: Int, total: Int)?

    init(_ info: DownloadInfo) {
        received = info.count.received
        expected = info.count.expected
        bytesPerSecond = info.bytesPerSecond
        remainingTime = info.estimatedTimeRemaining?.inSeconds
        isComplete = info.state == .complete
        isPaused = info.state == .suspend
        isCancelled = info.state == .cancel || info.state == .unknown
        path = info.path
    }

    init(_ info: BarrelInfo) {
        func count(_ states: DownloadState...) -> Int { states.reduce(0) { $0 + (info.states[$1] ?? 0) } }
        received = info.count.received
        fraction = info.fraction
        expected = fraction == nil ? nil : info.count.expected
        bytesPerSecond = info.bytesPerSecond
        remainingTime = info.estimatedTimeRemaining?.inSeconds
        isComplete = info.isComplete
        isPaused = count(.idle, .action) == 0 && count(.suspend) > 0
        isCancelled = count(.cancel) > 0 && count(.cancel, .complete, .unknown) == info.total
        files = (count(.complete), info.total)
    }

    /// The two unit counts of the `Progress`. They are equal only at the end, because equal counts make it finished.
    var units: (completed: Int64, total: Int64) {
        if isComplete { return (max(1, received), max(1, received)) }
        guard let expected else { return (received, -1) }
        let total = max(1, expected)
        let least = ((fraction ?? 0) * Double(total)).rounded(.up)
        return (min(max(received, Int64(min(least, 0x1p62))), total - 1), total)
    }
}
