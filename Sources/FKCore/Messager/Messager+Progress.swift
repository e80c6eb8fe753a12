import FKMiddleware
import Foundation

/// Foundation's `Progress` for a task and for a barrel (MCDownloadManager).
extension Messager {
    /// A `Progress` that follows the task and can steer it. Its unit is bytes.
    ///
    /// - `totalUnitCount` is -1, and the progress indeterminate, until the length is known. `isFinished` becomes true when
    ///   the file is complete and not before: while the last bytes are being verified, one unit is held back. An empty
    ///   file counts as one unit, for Foundation takes 0 of 0 as unfinished.
    /// - `kind` is `.file`, the operation `.downloading`; throughput and remaining time are in `userInfo` while the task
    ///   runs, the file URL once it is complete.
    /// - `pause()`, `resume()` and `cancel()` give the task the verbs suspend, resume and cancel, as they do for a parent
    ///   of it. A task that somebody else suspends is `isPaused`, one that is cancelled or trashed `isCancelled`.
    ///   A failed task is none of these: the progress stands still, and goes on when the task is queued again.
    ///
    /// It follows the task until that is complete or cancelled, or until nobody holds the progress any more; it keeps
    /// neither the downloader alive nor, once closed, the work path.
    ///
    /// Foundation's `Progress` is not safe to use from several threads outside Apple's systems. Every change is made on
    /// `queue`: give the queue on which the progress and its parents are read, `.main` for example.
    ///
    /// - Parameters:
    ///   - selector: with several tasks of one URL the oldest is followed.
    ///   - queue: a serial queue; nil takes one of the library, the same for all progresses.
    /// - Throws: `.notFound` when there is no such task, `.invalidURL` for a URL that is none, `.cancelled` for a closed
    ///   downloader.
    public func progress(_ selector: TaskSelector, on queue: DispatchQueue? = nil) async throws -> Progress {
        guard let info = try await engine.infos(selector).first else {
            throw DownloadError(.notFound, "There is no task \(selector.name).")
        }
        let link = ProgressLink(engine, .id(info.id), queue)
        let progress = await link.begin(.init(info))
        await link.follow(
            try await engine.observe(.id(info.id)) { [weak link] info in link?.update(.init(info)) })
        return progress
    }

    /// The same for the sum of a barrel. It is indeterminate until the lengths of all members are known, and then shows
    /// `BarrelInfo.fraction`, which never falls: after bytes were dropped, its completed units are more than the bytes that are
    /// there. It is finished when every member is complete, paused when none runs or waits and one is suspended, and cancelled when all that is
    /// not complete is cancelled. `userInfo` counts the files. Verbs go to all members.
    ///
    /// - Throws: `.notFound` when there is no such barrel, `.cancelled` for a closed downloader.
    public func barrelProgress(_ name: String, on queue: DispatchQueue? = nil) async throws -> Progress {
        let link = ProgressLink(engine, .barrel(name), queue)
        let progress = await link.begin(.init(try await engine.barrelInfo(name)))
        await link.follow(try await engine.observeBarrel(name) { [weak link] info in link?.update(.init(info)) })
        return progress
    }
}

/// What a `Progress` shows of a task or barrel.
struct ProgressSnapshot: Sendable {
    var received: Int64
    var expected: Int64?
    /// The whole is known to be `expected`.
    var isExpectedKnown: Bool
    /// Of a barrel, what is to be shown at least.
    var fraction: Double?
    var bytesPerSecond: Double
    var isComplete: Bool
    var isPaused: Bool
    var isCancelled: Bool
    var path: String?
    /// Finished and all members of a barrel.
    var files: (complete: Int, total: Int)?

    init(_ info: DownloadInfo) {
        received = info.count.received
        expected = info.count.expected
        isExpectedKnown = expected != nil
        bytesPerSecond = info.bytesPerSecond
        isComplete = info.state == .complete
        isPaused = info.state == .suspend
        isCancelled = info.state == .cancel || info.state == .unknown
        path = info.path
    }

    init(_ info: BarrelInfo) {
        func count(_ states: DownloadState...) -> Int { states.reduce(0) { $0 + (info.states[$1] ?? 0) } }
        received = info.count.received
        isExpectedKnown = info.isExpectedKnown
        fraction = info.fraction
        expected = isExpectedKnown || fraction != nil ? info.count.expected : nil
        bytesPerSecond = info.bytesPerSecond
        isComplete = info.isComplete
        isPaused = count(.prepare, .idle, .action) == 0 && count(.suspend) > 0
        isCancelled = count(.cancel) > 0 && count(.cancel, .complete, .unknown) == info.total
        files = (count(.complete), info.total)
    }

    /// The two counts of the `Progress`: it is finished when they are equal, so that they are not before the end.
    var units: (completed: Int64, total: Int64) {
        if isComplete { return (max(1, received), max(1, received)) }
        guard let expected else { return (received, -1) }
        let total = max(1, expected)
        let least = ((fraction ?? 0) * Double(total)).rounded(.up)
        return (min(max(received, Int64(min(least, 0x1p62))), total - 1), total)
    }

    /// Seconds to go at the present speed.
    var remainingTime: Double? {
        guard let expected, isExpectedKnown, !isComplete, bytesPerSecond > 0 else { return nil }
        return Double(max(0, expected - received)) / bytesPerSecond
    }
}
