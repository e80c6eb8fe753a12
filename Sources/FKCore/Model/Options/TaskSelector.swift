import FKMiddleware

/// Selects the tasks for a verb.
public enum TaskSelector: Codable, Sendable, Hashable, ExpressibleByStringLiteral {
    /// Every task with this URL: usually one, or several with different destinations.
    case url(String)
    /// One task.
    case id(TaskID)
    /// The members of the barrel with this name.
    case barrel(String)
    /// Every task that is in this state when the verb begins, possibly none.
    case state(DownloadState)
    /// Every task of the work path.
    case all

    /// A string literal such as `"https://…"` selects by URL.
    public init(stringLiteral value: String) { self = .url(value) }

    /// Compares URLs and barrel names by their bytes, so canonically equivalent texts differ.
    public static func == (one: TaskSelector, other: TaskSelector) -> Bool {
        switch (one, other) {
        case (.url(let one), .url(let other)), (.barrel(let one), .barrel(let other)): one.isExactly(other)
        case (.id(let one), .id(let other)): one == other
        case (.state(let one), .state(let other)): one == other
        case (.all, .all): true
        default: false
        }
    }

    /// Hashes the bytes of URLs and barrel names.
    public func hash(into hasher: inout Hasher) {
        switch self {
        case .url(let text), .barrel(let text): ExactText(text).hash(into: &hasher)
        case .id(let id): id.hash(into: &hasher)
        case .state(let state): state.hash(into: &hasher)
        case .all: break
        }
    }
}
