import FKMiddleware
import Foundation

/// The changes of tasks that a session has heard of and not taken yet.
final class SessionNews: Sendable {
    private let infos = Locked<[DownloadInfo]>([])
    private let hasMissed = Locked(false)
    private let continuation: AsyncStream<Void>.Continuation
    /// An element when there is something to take.
    let arrivals: AsyncStream<Void>

    init() { (arrivals, continuation) = AsyncStream.makeStream(of: Void.self, bufferingPolicy: .bufferingNewest(1)) }

    func add(_ info: DownloadInfo) {
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
    func miss() {
        hasMissed.withLock { $0 = true }
        continuation.yield()
    }

    func take() -> [DownloadInfo] {
        infos.withLock { infos in
            defer { infos = [] }
            return infos
        }
    }

    /// - Returns: true if changes were missed since the last call.
    func takeMiss() -> Bool {
        hasMissed.withLock { hasMissed in
            defer { hasMissed = false }
            return hasMissed
        }
    }

    /// Ends `arrivals`.
    func finish() { continuation.finish() }
}
