/// Single questions about one task. With several tasks of one URL: about the oldest.
extension Messager {
    /// Bytes of the whole file; nil until the first response has told it. Known again after a restart.
    public func totalLength(_ selector: TaskSelector) async -> Int64? { await info(selector)?.count.expected }

    /// How much is there, 0...1; nil while the length is unknown or there is no such task.
    public func fraction(_ selector: TaskSelector) async -> Double? { await info(selector)?.count.fraction }

    /// True when the file is whole and stands under its final name.
    public func isComplete(_ selector: TaskSelector) async -> Bool { await state(selector) == .complete }
}
