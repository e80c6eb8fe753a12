import FKCore
import FKMiddleware

/// The failed tasks of a run, and the command that tries them again. A value type; it holds at most `idLimit` ids.
struct RunFailures: Sendable {
    /// The most failures that are listed.
    static let listLimit = 20
    /// The most retryable tasks that are counted by id.
    static let idLimit = 200
    /// The most tasks that the command names, so that it is shorter than a line.
    static let namedLimit = 3

    private struct Entry: Sendable {
        var id: TaskID?
        var url: String
        var reason: String
    }

    private var entries: [Entry] = []
    /// The failed tasks that could succeed later.
    private var ids: [TaskID] = []
    /// The tasks whose failure a verb alone does not mend.
    private var others: Set<TaskID> = []
    /// What to do about those, each advice once.
    private var advice: [String] = []
    /// The failures of tasks that could not be created.
    private(set) var uncreated = 0
    /// True if a failed task could succeed later, because of the reason of its failure.
    private(set) var mayPass = false

    /// Records a failed task.
    mutating func add(_ info: DownloadInfo) {
        remove(info.id)
        let isRetryable = info.error?.isRetryable ?? true
        if info.error?.isRetryable == true { mayPass = true }
        if let hint = info.error.flatMap(Self.advice), !advice.contains(hint) { advice.append(hint) }
        if entries.count < Self.listLimit {
            entries.append(
                Entry(id: info.id, url: URLMasking.mask(info.url), reason: info.error?.shortText ?? "failed"))
        }
        if isRetryable, ids.count < Self.idLimit { ids.append(info.id) }
        if !isRetryable { others.insert(info.id) }
    }

    /// Records a task that could not be created.
    mutating func add(uncreated name: String, _ error: DownloadError) {
        uncreated += 1
        if entries.count < Self.listLimit { entries.append(Entry(url: URLMasking.mask(name), reason: error.shortText)) }
    }

    /// Removes a task that has been queued again.
    mutating func remove(_ id: TaskID) {
        guard !entries.isEmpty || !ids.isEmpty || !others.isEmpty else { return }
        entries.removeAll { $0.id == id }
        others.remove(id)
        if let index = ids.firstIndex(of: id) { ids.remove(at: index) }
    }

    /// The lines at the end of a run: one for each failure, then the command for those that could succeed, and what helps the
    /// others. Empty without a failure.
    ///
    /// - Parameters:
    ///   - failed: the number of failed tasks, which may be larger than the number of recorded ones.
    ///   - repeatsReasons: false leaves out the line of each failure; the default is true.
    ///   - suggested: completes a command with the options that it needs here.
    func lines(failed: Int, repeatsReasons: Bool = true, suggested: (String) -> String) -> [String] {
        let count = failed + uncreated
        guard count > 0 else { return [] }
        var lines = !repeatsReasons ? [] : entries.map { Escaping.visible("  \($0.url)  \($0.reason)") }
        if count > entries.count {
            lines.append("  and \(count - entries.count) more: \(suggested("fk list --state failed"))")
        }
        lines += advice
        let retryable = failed - others.count
        guard retryable > 0 else { return lines }
        let words =
            retryable == ids.count && ids.count <= Self.namedLimit
            ? ids.map(\.short).joined(separator: " ") : "--state failed"
        return lines + [
            retryable == 1 ? "Try it again with:" : "Try them again with:", suggested("fk retry --run \(words)"),
        ]
    }

    /// What helps after a failure that another attempt does not mend; nil if there is no better advice than its reason.
    private static func advice(_ error: DownloadError) -> String? {
        switch error.code {
        case .tooLarge: "A larger limit: the same command with another --max-size."
        case .tls where !error.isRetryable:
            "A certificate of your own authority: the same command with --cacert FILE."
        case .httpStatus where error.status == 401: "A login: the same command with --user NAME."
        case .httpStatus where error.status == 404 || error.status == 410:
            "A file that has moved: fk relink URL NEW-URL continues from its new address."
        default: nil
        }
    }
}
