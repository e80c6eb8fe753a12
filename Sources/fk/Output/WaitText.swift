import FKCore
import Foundation

/// The reasons for which tasks of a run wait, in short words for one line.
enum WaitText {
    /// One reason: `example.com asked for 1m58s`.
    static func text(_ waiting: Waiting, now: Date) -> String {
        let left = waiting.until.map { Formatting.duration(max(0, $0.timeIntervalSince(now))) }
        switch waiting.reason {
        case .slot:
            guard let limit = waiting.limit else { return "waits for its turn" }
            return limit == 1 ? "the only slot is taken" : "all \(limit) slots are taken"
        case .host, .retry:
            if let left, let policy = waiting.policy {
                return "\(waiting.host ?? "the host") gets its next request in \(left) (\(policy))"
            }
            if let left {
                return waiting.host.map { "\($0) asked for \(left)" } ?? "next attempt in \(left)"
            }
            guard let host = waiting.host else { return "next attempt is due" }
            return waiting.limit.map { "\(host) has \($0) of \($0) connections" } ?? "\(host) has no free connection"
        case .noSpace: return "no space on the disk" + (left.map { ", next attempt in \($0)" } ?? "")
        case .engine: return "no process runs the downloads"
        case .queue: return "no command runs it"
        case .background: return waiting.text
        }
    }

    /// The distinct reasons of a sample of waiting tasks, most frequent first: `12 waiting: a; b`.
    ///
    /// - Parameter count: the number of waiting tasks, which may be larger than the sample.
    static func line(count: Int, _ sample: [Waiting], now: Date) -> String? {
        guard count > 0 else { return nil }
        var counts: [(text: String, count: Int)] = []
        for waiting in sample {
            let text = text(waiting, now: now)
            if let index = counts.firstIndex(where: { $0.text == text }) {
                counts[index].count += 1
            } else {
                counts.append((text, 1))
            }
        }
        let order = counts.enumerated().sorted { ($1.element.count, $0.offset) < ($0.element.count, $1.offset) }
        let reasons = order.prefix(3).map(\.element.text)
        return "\(count) waiting" + (reasons.isEmpty ? "" : ": " + reasons.joined(separator: "; "))
    }
}
