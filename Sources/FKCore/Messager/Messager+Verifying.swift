import FKEngine
import FKMiddleware
import Foundation

extension Messager {
    /// Reads finished files again and compares them with their digests, or with the checksums of the bytes that were received.
    /// It changes nothing. Tasks without a finished file are left out. A task whose refresh or repair has not ended still has the
    /// file from before.
    ///
    /// ```swift
    /// var damaged: [VerifiedFile] = []
    /// for try await file in downloader.messager.verify(.barrel("models")) where file.result != .right {
    ///     damaged.append(file)
    /// }
    /// try await downloader.control.repair(damaged)
    /// ```
    ///
    /// It reads on all processors. The sequence throws `.notFound` for a task or barrel that is unknown.
    public func verify(_ selector: some TaskSelecting) -> AsyncThrowingStream<VerifiedFile, any Error> {
        let workPath = engine.workPath
        return AsyncThrowingStream { continuation in
            let isOver = Locked(false)
            continuation.onTermination = { _ in isOver.withLock { $0 = true } }
            DispatchQueue.global().async {
                do {
                    let reader = StoreReader(workPath)
                    let ids = try reader.taskIDs(matching: selector.selector)
                    var unread: DownloadError?
                    reader.verify(ids, problem: { unread = unread ?? $0 }) { file in
                        continuation.yield(file)
                        return !isOver.withLock { $0 }
                    }
                    continuation.finish(throwing: unread)
                } catch {
                    continuation.finish(throwing: error)
                }
            }
        }
    }
}
