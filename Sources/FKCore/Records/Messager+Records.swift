import FKMiddleware

extension Messager {
    /// The records of the work path that match, as they are at this moment.
    ///
    /// All records of the work path are read from disk once; later queries are answered from memory.
    ///
    /// - Throws: `.invalidArgument` for an impossible query, `.notFound` for a barrel that is not there.
    public func records(_ query: RecordQuery = .init()) async throws -> RecordPage { try await engine.records(query) }
}

extension Control {
    /// Changes the application's own pairs of tasks (`Builder.attributes`).
    ///
    /// - Parameter attributes: a nil value removes the pair; pairs that are not named stay. A key has 1 to 255 bytes, a
    ///   value at most 4,096, and a task at most 64 pairs: they are kept in its info file.
    /// - Returns: how many tasks were changed.
    /// - Throws: `.invalidArgument` for a pair beyond these limits, and then nothing has changed; `.notFound` when no task
    ///   matches; `.disk` and the like when an info file cannot be written.
    @discardableResult
    public func setAttributes(_ selector: TaskSelector, _ attributes: [String: String?]) async throws -> Int {
        try await engine.setAttributes(selector, attributes)
    }

    /// Notes that the finished file was used just now: `DownloadRecord.lastUsed`, to sort by.
    ///
    /// - Returns: how many tasks were marked.
    /// - Throws: `.notFound` when no task matches; `.disk` and the like when an info file cannot be written.
    @discardableResult
    public func markUsed(_ selector: TaskSelector) async throws -> Int { try await engine.markUsed(selector) }
}
