import FKMiddleware
import Foundation

/// A value that names tasks for verbs and questions: a `URL`, the text of one, a `TaskID`, a `DownloadTask`, a `Barrel`, or a
/// `TaskSelector` for all others.
///
/// ```swift
/// try await downloader.control.suspend("https://example.com/a.zip")
/// try await downloader.control.retry(.state(.error))
/// ```
public protocol TaskSelecting: Sendable {
    /// The tasks.
    var selector: TaskSelector { get }
}

extension String: TaskSelecting {
    /// Every task with this URL.
    public var selector: TaskSelector { .url(self) }
}

extension URL: TaskSelecting {
    /// Every task with this URL.
    public var selector: TaskSelector { .url(absoluteString) }
}

extension TaskID: TaskSelecting {
    /// The task with this id.
    public var selector: TaskSelector { .id(self) }
}

extension TaskSelecting where Self == TaskSelector {
    /// Every task with this URL: usually one, or several with different destinations.
    package static func url(_ url: String) -> TaskSelector { TaskSelector(.url(url)) }
    package static func id(_ id: TaskID) -> TaskSelector { TaskSelector(.id(id)) }
    /// The members of the barrel with this name.
    public static func barrel(_ name: String) -> TaskSelector { TaskSelector(.barrel(name)) }
    /// Every task that is in this state when the verb begins, possibly none.
    public static func state(_ state: DownloadState) -> TaskSelector { TaskSelector(.state(state)) }
    /// Every task of the work path.
    public static var all: TaskSelector { TaskSelector(.all) }
}

/// Selects the tasks for a verb or a question: `.barrel(_:)`, `.state(_:)`, `.all`, or the `selector` of a URL, an id, a task or a
/// barrel.
public struct TaskSelector: Codable, Sendable, Hashable, TaskSelecting {
    /// The kinds of a selection.
    package enum Kind: Codable, Sendable {
        case url(String)
        case id(TaskID)
        case barrel(String)
        case state(DownloadState)
        case all
    }

    package let kind: Kind

    init(_ kind: Kind) { self.kind = kind }

    /// The selector itself.
    public var selector: TaskSelector { self }

    /// Decodes a selector.
    public init(from decoder: any Decoder) throws { kind = try Kind(from: decoder) }

    /// Encodes the selector.
    public func encode(to encoder: any Encoder) throws { try kind.encode(to: encoder) }

    /// Compares URLs and barrel names by their bytes, so canonically equivalent texts differ.
    public static func == (one: TaskSelector, other: TaskSelector) -> Bool {
        switch (one.kind, other.kind) {
        case (.url(let one), .url(let other)), (.barrel(let one), .barrel(let other)): one.isExactly(other)
        case (.id(let one), .id(let other)): one == other
        case (.state(let one), .state(let other)): one == other
        case (.all, .all): true
        default: false
        }
    }

    /// Hashes the bytes of URLs and barrel names.
    public func hash(into hasher: inout Hasher) {
        switch kind {
        case .url(let text), .barrel(let text): ExactText(text).hash(into: &hasher)
        case .id(let id): id.hash(into: &hasher)
        case .state(let state): state.hash(into: &hasher)
        case .all: break
        }
    }
}

extension TaskSelector: CustomStringConvertible {
    /// The kind and its value, with the secrets of a URL masked.
    public var description: String {
        switch kind {
        case .url(let url): "TaskSelector(url: \(url.masked))"
        case .id(let id): "TaskSelector(id: \(id.short))"
        case .barrel(let name): "TaskSelector(barrel: \(name))"
        case .state(let state): "TaskSelector(state: \(state))"
        case .all: "TaskSelector(all)"
        }
    }
}
