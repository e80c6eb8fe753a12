import FKMiddleware

/// The states of tasks as people read and type them. `--json` and the records have the words of `DownloadState`.
enum ShownState: String, Sendable, CaseIterable {
    /// Queued, or waiting for a retry: `idle`.
    case waiting
    /// `action`.
    case running
    /// `suspend`.
    case suspended
    /// `cancel`.
    case cancelled
    /// `error`.
    case failed
    /// `complete`.
    case complete

    /// nil for a task that is gone.
    init?(_ state: DownloadState) {
        switch state {
        case .idle: self = .waiting
        case .action: self = .running
        case .suspend: self = .suspended
        case .cancel: self = .cancelled
        case .error: self = .failed
        case .complete: self = .complete
        case .unknown: return nil
        }
    }

    /// Accepts the stored words, too; nil for another word.
    init?(word: String) {
        if let state = Self(rawValue: word) ?? DownloadState(rawValue: word).flatMap(Self.init) {
            self = state
        } else {
            return nil
        }
    }

    /// The state whose word begins with this text, or whose stored word it is; nil for none.
    init?(beginning text: String) {
        guard let state = Self.allCases.first(where: { $0.rawValue.hasPrefix(text) }) ?? Self(word: text) else {
            return nil
        }
        self = state
    }

    /// The stored states, most frequent first.
    var states: [DownloadState] {
        switch self {
        case .waiting: [.idle]
        case .running: [.action]
        case .suspended: [.suspend]
        case .cancelled: [.cancel]
        case .failed: [.error]
        case .complete: [.complete]
        }
    }

    /// The words, for the help and the completions.
    static let words = allCases.map(\.rawValue)
}

extension DownloadState {
    /// The word that people read.
    var shown: String { ShownState(self)?.rawValue ?? rawValue }
}

extension ParsedArguments {
    /// The value of `--state`; nil if it was not given.
    func state() throws -> ShownState? {
        guard let text = self["state"] else { return nil }
        if let state = ShownState(word: text) { return state }
        throw noChoice(
            text, "--state", among: ShownState.words,
            alsoKnown: DownloadState.allCases.filter { $0 != .unknown }.map(\.rawValue))
    }
}
