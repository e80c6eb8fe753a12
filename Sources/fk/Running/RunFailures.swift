import FKCore
import FKManifests
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

    /// The failed tasks, in the order of their failures.
    var ids: [TaskID] { entries.sorted { $0.value.place < $1.value.place }.map(\.key) }

    mutating func add(_ info: DownloadInfo) {
        if info.error?.isRetryable == true { mayPass = true }
        guard entries.count < Self.limit || entries[info.id] != nil else { return }
        entries[info.id] = entry(
            info.url, info.error?.shortText(of: info.url) ?? "failed", isRetryable: info.error?.mayPass ?? true,
            info.error.flatMap { Self.advice($0, of: info.url, hasBytes: info.count.received > 0) })
    }

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
    ///   - run: the run that the command names; nil names the tasks themselves.
    ///   - repeatsReasons: false leaves out the line of each failure; the default is true.
    ///   - suggested: completes a command with the options that it needs here.
    func lines(
        failed: Int, of run: RunName? = nil, repeatsReasons: Bool = true, suggested: (String) -> String
    ) -> [String] {
        let count = failed + uncreated
        guard count > 0 else { return [] }
        let all = (Array(entries.values) + refused).sorted { $0.place < $1.place }
        var lines = !repeatsReasons ? [] : Self.list(all)
        if count > all.count { lines.append("  and \(count - all.count) more") }
        if failed > Self.listLimit { lines.append("Each with its reason: \(suggested("fk list --state failed"))") }
        for entry in all {
            if let advice = entry.advice, !lines.contains(advice) { lines.append(advice) }
        }
        let ids = entries.filter(\.value.isRetryable).sorted { $0.value.place < $1.value.place }.map(\.key)
        let retryable = failed - (entries.count - ids.count)
        guard retryable > 0 else { return lines }
        if let run {
            let begin = entries.count < failed ? "Try the first \(entries.count) of them again with:" : nil
            return lines + [
                begin ?? (retryable == 1 ? "Try it again with:" : "Try them again with:"),
                suggested("fk retry --run \(run.text)"),
            ]
        }
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
            return entries.map { "  \($0.url.masked)  \($0.reason)".visible }
        }
        var groups: [String: (count: Int, first: Int)] = [:]
        for entry in entries {
            let host = entry.url.site.shownSite
            groups["\(host): \(withoutPath(entry.reason))", default: (0, entry.place)].count += 1
        }
        let order = groups.sorted { ($1.value.count, $0.value.first) < ($0.value.count, $1.value.first) }
        let lines = order.prefix(groupLimit).map { text, group in
            "  \(Columns.pad(group.count.plural("file"), to: 8)) \(text)".visible
        }
        return order.count > groupLimit ? lines + ["  and \(order.count - groupLimit) other reasons"] : lines
    }

    /// The reason without the path of the file, which would make each one a reason of its own.
    private static func withoutPath(_ reason: String) -> String {
        reason.range(of: " exists and was not made").map { "a file of the name" + reason[$0.lowerBound...] } ?? reason
    }

    /// The login of a command goes to the server of the URL alone, and a redirect may lead to another one that wants a login.
    private static func loginHost(_ error: DownloadError, of url: String) -> String? {
        guard let host = error.url.flatMap({ URLOrigin($0)?.host }), host != URLOrigin(url)?.host else { return nil }
        return "401 comes from \(host), to which the server redirects: --login-host \(host) logs in there.".visible
    }

    /// What helps where the reason of the failure names no option.
    ///
    /// | status | advice |
    /// | --- | --- |
    /// | 401 or 403 of a registry's blob | the saved logins, which a list does not have |
    /// | 401 of another host, behind a redirect | that host as the login host |
    /// | 403 of a signed link | a new link: they expire |
    /// | 403 of Amazon's storage | a signature, which a list does not have |
    /// | 403 | a login, or another User-Agent |
    /// | 404 | the address, or the new one of a file that has moved |
    /// | 410 | the file is gone for good |
    /// | 416, with received bytes | the bytes here are not of that file: begin again |
    /// | 451 | the law forbids it |
    ///
    /// - Parameter hasBytes: true if some of the file was received.
    static func advice(_ error: DownloadError, of url: String, hasBytes: Bool) -> String? {
        let path = url.urlParts.path
        return switch error.status {
        case 401 where path.hasPrefix("/v2/") && path.contains("/blobs/sha"),
            403 where path.hasPrefix("/v2/") && path.contains("/blobs/sha"):
            "A registry's file: fk get -r oci:REGISTRY/REPO:TAG uses the saved logins; fk barrel sync does for a barrel of it."
        case 401: loginHost(error, of: url)
        case 403 where url.looksSigned:
            "A signed link expires: fk relink URL NEW-URL continues with a new one."
        case 403 where URLOrigin(url)?.isAmazon == true:
            "403: fk get s3://BUCKET/KEY, fk barrel sync for a barrel of a bucket, or --aws-sigv4 aws:amz:REGION:s3 sign the request."
        case 403: "403: a login (--user, --netrc, --cookies) or another --user-agent may help."
        case 404:
            "404: a typo in the address? If the file has moved: fk relink URL NEW-URL."
        case 410: "410: the server says that the file is gone for good."
        case 416 where hasBytes: "416: the bytes here are of another file: fk forget URL, then give it again."
        case 451: "451: the server must not send this file, for legal reasons."
        default: nil
        }
    }
}

extension DownloadError {
    /// True for a failure that may pass by itself, or once a person has made room.
    var mayPass: Bool { isRetryable || code == .noSpace }
}
