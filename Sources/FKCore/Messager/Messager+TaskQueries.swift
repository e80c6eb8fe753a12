import Foundation

/// Single questions about one task. For several tasks of one URL, they are about the oldest.
extension Messager {
    /// The length of the file in bytes; nil until the first response has reported it. It is known again after a
    /// restart.
    public func totalLength(_ selector: some TaskSelecting) async -> Int64? { await info(selector)?.count.expected }

    /// The progress, in 0...1; nil if the length is unknown or there is no such task.
    public func fraction(_ selector: some TaskSelecting) async -> Double? { await info(selector)?.count.fraction }

    /// The finished file; nil until the task is complete.
    public func fileURL(_ selector: some TaskSelecting) async -> URL? { await info(selector)?.fileURL }

    /// True if the file is complete and has its final name.
    public func isComplete(_ selector: some TaskSelecting) async -> Bool { await state(selector) == .complete }
}
