import FKMiddleware

extension DownloadError {
    /// Nothing is known about the URL.
    fileprivate static func unknown(_ url: String) -> DownloadError {
        let shown = url.masked
        return DownloadError(
            .notFound, "There is no task for \(shown). Add it first with `Downloader.add`.", url: shown
        )
    }
}

/// Problems that have not been fetched yet: each message once, and at most `limit`. Confined to the engine.
package final class Problems {
    /// The first problems are kept, because they are closest to the cause.
    static let limit = 1_000

    package init() {}

    private var errors: [DownloadError] = []
    private var known: Set<String> = []
    private var dropped = 0
    /// The URLs without a task that were asked about; the first ones up to the limit.
    private var unknown: Set<String> = []

    package func append(_ error: DownloadError) {
        guard known.insert(error.message).inserted else { return }
        if errors.count < Self.limit {
            errors.append(error)
        } else {
            known.remove(error.message)
            dropped += 1
        }
    }

    /// A URL without a task is a problem once, also after `drain`: a view may ask about it at each drawing.
    package func recordUnknown(_ url: String) {
        guard unknown.count < Self.limit, unknown.insert(url).inserted else { return }
        append(.unknown(url))
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
    package func drain() -> [DownloadError] {
        defer { (errors, known, dropped) = ([], [], 0) }
        guard dropped > 0 else { return errors }
        return errors + [DownloadError(.disk, "\(dropped) more problems were reported and not kept.")]
    }
}
