import FKMiddleware

/// The order in which tasks of the same priority start.
public enum QueueOrder: String, Codable, Sendable, Hashable, CaseIterable {
    /// First in, first out. The default.
    case fifo
    /// Last in, first out.
    case lifo
}
