import FKEngine
import FKMiddleware
import Foundation

/// The changes of state of all tasks of a work path that were reported and not read yet, whichever process runs the tasks. Safe to use
/// from any thread.
///
/// It listens from `follow` until it is released.
package final class TaskChanges: Sendable {
    /// What a listener fills. It lives as long as the listener.
    private final class Buffer: Sendable {
        let infos = Locked<[DownloadInfo]>([])
        let hasMissed: Locked<Bool>
        let arrivals: AsyncStream<Void>
        let continuation: AsyncStream<Void>.Continuation

        init(hasMissed: Bool) {
            self.hasMissed = Locked(hasMissed)
            (arrivals, continuation) = AsyncStream.makeStream(of: Void.self, bufferingPolicy: .bufferingNewest(1))
        }

        func add(_ info: DownloadInfo) {
            let isFirst = infos.withLock { infos in
                defer { infos.append(info) }
                return infos.isEmpty
            }
            // A burst of small files costs one wake-up instead of one for each change of state.
            guard isFirst else { return }
            DispatchQueue.global().asyncAfter(deadline: .now() + .milliseconds(5)) { [continuation] in
                continuation.yield()
            }
        }

        func miss(wakes: Bool = true) {
            hasMissed.withLock { $0 = true }
            if wakes { continuation.yield() }
        }
    }

    private let buffer: Buffer
    /// Removes the listener; nil before there is one.
    private let stop = Locked<(@Sendable () -> Void)?>(nil)

    /// - Parameter hasMissed: true, the default, if all tasks have to be read first.
    package init(hasMissed: Bool = true) { buffer = Buffer(hasMissed: hasMissed) }

    deinit { end() }

    /// Begins to listen. Call it once.
    ///
    /// - Parameter isIncluded: chooses the changes; the default takes all.
    package func follow(
        _ engine: any EngineAccess, where isIncluded: @escaping @Sendable (DownloadInfo) -> Bool = { _ in true }
    ) async {
        let number = await engine.observeStates(missed: { [buffer] in buffer.miss() }) { [buffer] info in
            if isIncluded(info) { buffer.add(info) }
        }
        stop.withLock { stop in
            stop = { [weak engine] in if let engine { Task { await engine.stopObserving(number) } } }
        }
    }

    /// Stops listening.
    package func end() { stop.withLock { $0.take() }?() }

    /// An element when there is something to read.
    package var arrivals: AsyncStream<Void> { buffer.arrivals }

    /// Adds a change that the engine did not report.
    package func add(_ info: DownloadInfo) { buffer.add(info) }

    /// Changes may be missing, so the tasks have to be read again.
    ///
    /// - Parameter wakes: false leaves that to the next arrival.
    package func miss(wakes: Bool = true) { buffer.miss(wakes: wakes) }

    /// The changes since the last call, in order.
    package func drain() -> [DownloadInfo] {
        buffer.infos.withLock { infos in
            defer { infos = [] }
            return infos
        }
    }

    /// True if changes were missed since the last call. Read it before the tasks: what changes later is in the next changes.
    package func drainMiss() -> Bool {
        buffer.hasMissed.withLock { hasMissed in
            defer { hasMissed = false }
            return hasMissed
        }
    }

    /// Ends a wait for `arrivals`.
    package func wake() { buffer.continuation.yield() }

    /// Ends `arrivals`.
    func finish() { buffer.continuation.finish() }
}
