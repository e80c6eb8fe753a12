import FKCore
import FKMiddleware

/// The failed tasks of a run, and the command that tries them again. A value type; it holds at most `limit` failures.
struct RunFailures: Sendable {
    /// The most failures that are listed one by one. More are grouped by host and reason.
    static let listLimit = 5
    /// The most groups that are listed.
    static let groupLimit = 20
    /// The most failures that are kept.
    static let limit = 10_000
    /// The most tasks that the command names, so that it is shorter than a line.
    static let namedLimit = 3

    private struct Entry: Sendable {
        var url: String
        var reason: String
        var isRetryable: Bool
        var advice: String?
        /// The place in the order of the failures.
        var place: Int
    }

    private var entries: [TaskID: Entry] = [:]
    private var places = 0
    /// The failures of tasks that could not be created.
    private(set) var uncreated = 0
    private var refused: [Entry] = []
    /// True if a failed task could succeed later, because of the reason of its failure.
    private(set) var mayPass = false

    /// Records a failed task.
    mutating func add(_ info: DownloadInfo) {
        if info.error?.isRetryable == true { mayPass = true }
        guard entries.count < Self.limit || entries[info.id] != nil else { return }
        entries[info.id] = entry(
            info.url, info.error?.shortText ?? "failed", isRetryable: info.error?.isRetryable ?? true,
            info.error.flatMap(Self.advice))
    }

    /// Records a task that could not be created.
    mutating func add(uncreated name: String, _ error: DownloadError) {
        uncreated += 1
        if refused.count < Self.limit { refused.append(entry(name, error.shortText, isRetryable: false, nil)) }
    }

    private mutating func entry(_ url: String, _ reason: String, isRetryable: Bool, _ advice: String?) -> Entry {
        places += 1
        return Entry(url: url, reason: reason, isRetryable: isRetryable, advice: advice, place: places)
    }

    /// Removes a task that has been queued again.
    mutating func remove(_ id: TaskID) {
        if !entries.isEmpty { entries[id] = nil }
    }

    /// The lines at the end of a run: the failures, then the command for those that could succeed, and what helps the
    /// others. Empty without a failure.
    ///
    /// - Parameters:
    ///   - failed: the number of failed tasks, which may be larger than the number of recorded ones.
    ///   - repeatsReasons: false leaves out the line of each failure; the default is true.
    ///   - suggested: completes a command with the options that it needs here.
    func lines(failed: Int, repeatsReasons: Bool = true, suggested: (String) -> String) -> [String] {
        let count = failed + uncreated
        guard count > 0 else { return [] }
        let all = (Array(entries.values) + refused).sorted { $0.place < $1.place }
        var lines = !repeatsReasons ? [] : Self.list(all)
        if count > all.count { lines.append("  and \(count - all.count) more") }
        if count > Self.listLimit { lines.append("Each with its reason: \(suggested("fk list --state failed"))") }
        for entry in all {
            if let advice = entry.advice, !lines.contains(advice) { lines.append(advice) }
        }
        let ids = entries.filter(\.value.isRetryable).sorted { $0.value.place < $1.value.place }.map(\.key)
        let retryable = failed - (entries.count - ids.count)
        guard retryable > 0 else { return lines }
        let words =
            retryable == ids.count && ids.count <= Self.namedLimit
            ? " " + ids.map(\.short).joined(separator: " ") : ""
        return lines + [
            retryable == 1 ? "Try it again with:" : "Try them again with:", suggested("fk retry --run\(words)"),
        ]
    }

    /// A line for each of a few failures; of more, a line for each host and reason, the most frequent first.
    private static func list(_ entries: [Entry]) -> [String] {
        guard entries.count > listLimit else {
            return entries.map { Escaping.visible("  \(URLMasking.mask($0.url))  \($0.reason)") }
        }
        var groups: [String: (count: Int, first: Int)] = [:]
        for entry in entries {
            let host = HostName.shown(HostName.site(entry.url))
            groups["\(host): \(entry.reason)", default: (0, entry.place)].count += 1
        }
        let order = groups.sorted { ($1.value.count, $0.value.first) < ($0.value.count, $1.value.first) }
        let lines = order.prefix(groupLimit).map { text, group in
            Escaping.visible("  \(Columns.pad(Formatting.count(group.count, "file"), to: 8)) \(text)")
        }
        return order.count > groupLimit ? lines + ["  and \(order.count - groupLimit) other reasons"] : lines
    }

    /// The command that helps where the reason of the failure names no option.
    private static func advice(_ error: DownloadError) -> String? {
        error.status == 404 || error.status == 410
            ? "A file that has moved: fk relink URL NEW-URL continues from its new address." : nil
    }
}
