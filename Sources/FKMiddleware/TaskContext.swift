import Foundation

/// A task as its middlewares see it.
public struct TaskContext: Sendable, Hashable {
    /// The task's id.
    public var id: TaskID
    /// The URL that the task was created with, percent-encoded. Mirrors and redirects do not change it.
    public var originalURL: URL {
        get { URL(string: address) ?? URL(fileURLWithPath: "/") }
        set { address = newValue.absoluteString }
    }
    /// The text of `originalURL`. The `URL` is made only for a middleware that asks for it, because making it is slow.
    package private(set) var address: String
    /// The URL as the application gave it to the builder, such as `https://example.com/图片.png`. Where the task did not come
    /// from a builder, it is the text of `originalURL`.
    public var givenURL: String
    /// The number of the attempt, counted from 1.
    public var attempt: Int
    /// The barrels the task is a member of.
    public var barrels: [String]
    /// The application's own key-value pairs, as set on the builder.
    public var attributes: [String: String]
    /// True if the engine signs the task's requests with the credentials of AWS.
    package var isSigned = false

    /// Creates a context for tests of a middleware. The engine creates its own.
    ///
    /// - Parameter givenURL: nil, the default, for the text of `originalURL`.
    public init(
        id: TaskID, originalURL: URL, givenURL: String? = nil, attempt: Int = 1, barrels: [String] = [],
        attributes: [String: String] = [:]
    ) {
        self.init(
            id: id, address: originalURL.absoluteString, givenURL: givenURL, attempt: attempt, barrels: barrels,
            attributes: attributes)
    }

    /// Creates a context by the text of the URL.
    package init(
        id: TaskID, address: String, givenURL: String?, attempt: Int, barrels: [String], attributes: [String: String]
    ) {
        self.id = id
        self.address = address
        self.givenURL = givenURL ?? address
        self.attempt = attempt
        self.barrels = barrels
        self.attributes = attributes
    }
}

extension TaskContext: CustomStringConvertible {
    /// The id, the attempt and the URL, with the secrets of the URL masked.
    public var description: String { "TaskContext(\(id.short), attempt \(attempt), \(address.masked))" }
}
