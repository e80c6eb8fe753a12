import FKCore
import FKMiddleware

/// The failed tasks of a run, and the command that tries them again. A value type; it holds at most `idLimit` ids.
struct RunFailures: Sendable {
    /// The most failures that are listed.
    static let listLimit = 20
    /// The most tasks that the command names.
    static let idLimit = 200

    private struct Entry: Sendable {
        var id: TaskID?
        var url: String
        var reason: String
    }

    private var entries: [Entry] = []
    private var ids: [TaskID] = []
    /// The failures of tasks that could not be created.
    private(set) var uncreated = 0
    /// True if a failed task could succeed later, because of the reason of its failure.
    private(set) var mayPass = false

    /// Records a failed task.
    mutating func add(_ info: DownloadInfo) {
        remove(info.id)
        if info.error?.isRetryable == true { mayPass = true }
        if entries.count < Self.listLimit {
            entries.append(
                Entry(id: info.id, url: URLMasking.mask(info.url), reason: info.error?.shortText ?? "failed"))
        }
        if ids.count < Self.idLimit { ids.append(info.id) }
    }

    /// Records a task that could not be created.
    mutating func add(uncreated name: String, _ error: DownloadError) {
        uncreated += 1
        if entries.count < Self.listLimit { entries.append(Entry(url: URLMasking.mask(name), reason: error.shortText)) }
    }

    /// Removes a task that has been queued again.
    mutating func remove(_ id: TaskID) {
        guard !ids.isEmpty, let index = ids.firstIndex(of: id) else { return }
        ids.remove(at: index)
        entries.removeAll { $0.id == id }
    }

    /// The lines at the end of a run: one for each failure, then the command. Empty without a failure.
    ///
    /// - Parameters:
    ///   - failed: the number of failed tasks, which may be larger than the number of recorded ones.
    ///   - suggested: completes a command with the options that it needs here.
    func lines(failed: Int, suggested: (String) -> String) -> [String] {
        let count = failed + uncreated
        guard count > 0 else { return [] }
        var lines = entries.map { Escaping.visible("  \($0.url)  \($0.reason)") }
        if count > entries.count {
            lines.append("  and \(count - entries.count) more: \(suggested("fk list --state error"))")
        }
        guard failed > 0 else { return lines }
        let isWhole = ids.count == failed
        let words = isWhole ? ids.map(\.short).joined(separator: " ") : "--state error"
        return lines + [
            failed == 1 ? "Try it again with:" : "Try them again with:", suggested("fk retry --run \(words)"),
        ]
    }
}
