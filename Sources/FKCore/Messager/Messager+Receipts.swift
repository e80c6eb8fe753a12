import FKMiddleware
import Foundation

extension Receipt {
    /// Reads receipts from a work path, which another process may own, in the order of submission. It changes nothing
    /// and needs no downloader.
    ///
    /// - Parameter workPath: a file URL; nil, the default, uses the default of `Configure`.
    /// - Returns: the receipts; empty if no task matches. Unreadable info files are left out.
    /// - Throws: `.notFound` for a missing barrel or work path, `.invalidURL` for an invalid URL, `.workPathUnusable`
    ///   or `.laterVersion`.
    public static func stored(
        _ selector: some TaskSelecting = TaskSelector.all, workPath: URL? = nil
    ) throws(DownloadError) -> [Receipt] {
        try typedNow { try read(selector.selector, workPath: workPath) }
    }

    private static func read(_ selector: TaskSelector, workPath: URL?) throws -> [Receipt] {
        let path = WorkPath(Configure(workPath: workPath).workPath)
        try path.open(create: false)
        return try StoreReader(path).records(matching: selector).map { Receipt($0) }
    }
}

extension Messager {
    /// The task's receipt as it is now; nil if there is no such task. For several tasks of one URL, the oldest.
    public func receipt(_ selector: some TaskSelecting) async -> Receipt? { await receipts(selector).first }

    /// The receipts of all matching tasks, in the order of their submission; empty if there are none.
    public func receipts(_ selector: some TaskSelecting = TaskSelector.all) async -> [Receipt] {
        let selector = selector.selector
        return (try? await engine.snapshot { try $0.receipts(selector) }) ?? []
    }
}
