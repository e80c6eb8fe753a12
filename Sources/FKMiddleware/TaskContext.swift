import Foundation

/// What a middleware is told about the task it serves.
public struct TaskContext: Sendable, Hashable {
    /// The task's id: 64 lower-case hexadecimal digits.
    public var id: String
    /// The URL the task was built with, percent-encoded. Mirrors and redirects do not change it.
    public var originalURL: URL
    /// 1 for the first attempt, and one more for each attempt after it.
    public var attempt: Int
    /// The barrels the task is a member of.
    public var barrels: [String]
    /// The application's own key-value pairs, as given to the builder.
    public var attributes: [String: String]

    /// For tests of a middleware; the engine makes its own.
    public init(
        id: String, originalURL: URL, attempt: Int = 1, barrels: [String] = [], attributes: [String: String] = [:]
    ) {
        self.id = id
        self.originalURL = originalURL
        self.attempt = attempt
        self.barrels = barrels
        self.attributes = attributes
    }
}
