import FKMiddleware

/// Problems that have not been fetched yet: each text once, and at most `limit` texts. Confined to the engine.
final class Problems {
    /// The first problems are kept, because they are closest to the cause.
    static let limit = 1_000

    private var texts: [String] = []
    private var known: Set<String> = []
    private var dropped = 0

    func append(_ text: String) {
        guard known.insert(text).inserted else { return }
        if texts.count < Self.limit {
            texts.append(text)
        } else {
            known.remove(text)
            dropped += 1
        }
    }

    /// Performs an action whose failure becomes a problem, because nobody waits for its result.
    func during(_ action: () throws -> Void) {
        do {
            try action()
        } catch {
            append((error as? DownloadError)?.message ?? "\(error)")
        }
    }

    /// Returns and clears the problems since the last call.
    func take() -> [String] {
        defer { (texts, known, dropped) = ([], [], 0) }
        return dropped == 0 ? texts : texts + ["\(dropped) more problems were reported and not kept."]
    }
}
