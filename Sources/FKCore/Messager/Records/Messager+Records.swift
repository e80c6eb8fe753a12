import FKEngine
import FKMiddleware

extension Messager {
    /// The records of the work path that match a query, as they are now.
    ///
    /// The first call reads all records of the work path from disk. Later calls use memory.
    ///
    /// - Throws: `.invalidArgument` for an invalid query, `.notFound` for a missing barrel.
    public func records(_ query: RecordQuery = .init()) async throws(DownloadError) -> RecordPage {
        try await typed { try await engine.snapshot { try $0.records(query) } }
    }

    /// The record of the task as it is now; nil if there is no such task. For several tasks of one URL, the oldest.
    public func record(_ selector: some TaskSelecting) async -> DownloadRecord? {
        let selector = selector.selector
        return try? await engine.snapshot { source in
            guard let id = try source.infos(selector).first?.id else { return nil }
            var query = RecordQuery()
            query.ids = [id]
            return try source.records(query).records.first
        }
    }

    /// The head of the response that the task's file comes from, as its record has it; nil before the first one, and if there is no
    /// such task. For several tasks of one URL, the oldest.
    public func response(_ selector: some TaskSelecting) async -> ResponseHead? {
        guard let id = await info(selector)?.id else { return nil }
        return try? StoreReader(engine.workPath).record(id).response
    }
}

extension Control {
    /// Changes the application's own key-value pairs of tasks (`Builder.attributes`).
    ///
    /// - Parameter attributes: a nil value removes its pair; pairs that are not named stay. A key has 1 to 255 bytes,
    ///   a value at most 4,096 bytes, and a task at most 64 pairs, because they are stored in its info file.
    /// - Returns: the number of changed tasks.
    /// - Throws: `.invalidArgument` for a pair that exceeds these limits, before anything is changed; `.notFound` if
    ///   no task matches; `.disk` and similar codes if an info file cannot be written.
    @discardableResult
    public func setAttributes(
        _ selector: some TaskSelecting, _ attributes: [String: String?]
    ) async throws(DownloadError) -> Int {
        try await engine.perform(.setAttributes(selector.selector, attributes))
    }

    /// Records that the finished file was used just now (`DownloadRecord.lastUsed`), to sort by.
    ///
    /// - Returns: the number of marked tasks.
    /// - Throws: `.notFound` if no task matches; `.disk` and similar codes if an info file cannot be written.
    @discardableResult
    public func markUsed(_ selector: some TaskSelecting) async throws(DownloadError) -> Int {
        try await engine.perform(.markUsed(selector.selector))
    }
}
