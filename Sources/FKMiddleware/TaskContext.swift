import Foundation

/// A task as its middlewares see it.
public struct TaskContext: Sendable, Hashable {
    /// The task's id.
    public var id: TaskID
    /// The URL that the task was created with, percent-encoded. Mirrors and redirects do not change it.
    public var originalURL: URL
    /// The number of the attempt, counted from 1.
    public var attempt: Int
    /// The barrels the task is a member of.
    public var barrels: [String]
    /// The application's own key-value pairs, as set on the builder.
    public var attributes: [String: String]

    /// Creates a context for tests of a middleware. The engine creates its own.
    public init(
        id: TaskID, originalURL: URL, attempt: Int = 1, barrels: [String] = [], attributes: [String: String] = [:]
    ) {
        self.id = id
        self.originalURL = originalURL
        self.attempt = attempt
        self.barrels = barrels
        self.attributes = attributes
    }
}
