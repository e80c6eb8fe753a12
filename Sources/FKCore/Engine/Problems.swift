import FKMiddleware

/// Problems that have not been fetched yet: each message once, and at most `limit`. Confined to the engine.
final class Problems {
    /// The first problems are kept, because they are closest to the cause.
    static let limit = 1_000

    private var errors: [DownloadError] = []
    private var known: Set<String> = []
    private var dropped = 0

    func append(_ error: DownloadError) {
        guard known.insert(error.message).inserted else { return }
        if errors.count < Self.limit {
            errors.append(error)
        } else {
            known.remove(error.message)
            dropped += 1
        }
    }

    func append(_ text: String, code: DownloadError.Code = .disk) { append(DownloadError(code, text)) }

    /// Performs an action. Its failure becomes a problem, because no caller waits for its result.
    func during(_ action: () throws -> Void) {
        do {
            try action()
        } catch {
            append(error as? DownloadError ?? DownloadError(.disk, "\(error)"))
        }
    }

    /// Returns and clears the problems since the last call.
    func take() -> [DownloadError] {
        defer { (errors, known, dropped) = ([], [], 0) }
        guard dropped > 0 else { return errors }
        return errors + [DownloadError(.disk, "\(dropped) more problems were reported and not kept.")]
    }
}
