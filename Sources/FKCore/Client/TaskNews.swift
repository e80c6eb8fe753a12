import FKEngine
import FKMiddleware
import Foundation

/// The changes of tasks that were reported and not taken yet. Safe to use from any thread.
package final class TaskNews: Sendable {
    private let infos = Locked<[DownloadInfo]>([])
    private let hasMissed: Locked<Bool>
    private let continuation: AsyncStream<Void>.Continuation
    /// An element when there is something to take.
    package let arrivals: AsyncStream<Void>

    /// - Parameter hasMissed: true if everything has to be read first. The default is false.
    package init(hasMissed: Bool = false) {
        self.hasMissed = Locked(hasMissed)
        (arrivals, continuation) = AsyncStream.makeStream(of: Void.self, bufferingPolicy: .bufferingNewest(1))
    }

    package func add(_ info: DownloadInfo) {
        let isFirst = infos.withLock { infos in
            defer { infos.append(info) }
            return infos.isEmpty
        }
        // A burst of small files costs one wake-up instead of one for each change of state.
        guard isFirst else { return }
        DispatchQueue.global().asyncAfter(deadline: .now() + .milliseconds(5)) { [continuation] in continuation.yield()
        }
    }

    /// Changes may be missing, so the open tasks have to be read again.
    package func miss() {
        hasMissed.withLock { $0 = true }
        continuation.yield()
    }

    package func drain() -> [DownloadInfo] {
        infos.withLock { infos in
            defer { infos = [] }
            return infos
        }
    }

    /// - Returns: true if changes were missed since the last call.
    package func drainMiss() -> Bool {
        hasMissed.withLock { hasMissed in
            defer { hasMissed = false }
            return hasMissed
        }
    }

    /// Ends `arrivals`.
    func finish() { continuation.finish() }
}
