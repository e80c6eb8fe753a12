import FKCore
import FKMiddleware
import Foundation

struct RecordText {
    private let record: TaskRecord
    /// The named base of its place; nil without one.
    private let base: Places.Base?

    /// - Parameter places: the stored form of its places, to tell the base; the default has none.
    init(_ record: TaskRecord, in places: Places = .none) {
        self.record = record
        base = places.base(of: record).flatMap { $0.name == Places.work ? nil : $0 }
    }

    var lines: [String] { facts + history }

    /// The values of the record, one a line.
    var facts: [String] {
        var rows: [(String, String)] = [
            ("url", record.task.url.masked), ("id", record.id.hex),
            ("state", lost == nil ? record.state.shown : "gone"),
            (
                "bytes",
                Formatting.amount(record.received, of: record.expected)
                    + (record.lengthVerified == false ? ", length not verified" : "")
            ),
        ]
        func add(_ name: String, _ value: String?) { if let value, !value.isEmpty { rows.append((name, value)) } }
        add("path", record.path.map { path in lost.map { "\(path): \($0)" } ?? path })
        add("synced", synced)
        add("folder", record.task.directory)
        add("base", base.map { "\($0.name), \($0.root)" })
        add("mirrors", record.task.mirrors.map(\.masked).joined(separator: " "))
        add("barrels", record.barrels.joined(separator: ", "))
        let shown = DownloadRecord(record)
        add("type", shown.mimeType)
        add("encoding", record.validator?.coding.map { "\($0), which was not asked for: the bytes are kept as sent" })
        add("checksum", record.task.options.checksum?.description)
        add("list", record.task.optionsBox?.value.list.map { $0.name + ($0.signer.map { ", signed by \($0)" } ?? "") })
        add("signed by", record.task.optionsBox?.value.signature.map { SignatureKey.shown($0.key) })
        for (name, value) in record.task.attributes.sorted(by: { $0.key < $1.key }) {
            rows.append(("attribute", "\(name)=\(value)"))
        }
        if record.task.options.insecure == true { rows.append(("insecure", "the server's certificate is not checked")) }
        rows.append(("attempts", "\(record.attempts)"))
        if let rate = record.bytesPerSecond, rate > 0 {
            rows.append(("speed", Formatting.rate(Double(rate)) + (record.state == .action ? "" : ", average")))
        }
        if let waiting = record.waiting { add("waiting", waiting.text) }
        add("error", record.shownError?.shortText)
        add("created", record.created.timestamp)
        add("finished", record.finished.map(\.timestamp))
        add("last used", record.lastUsed.map(\.timestamp))
        let width = rows.map(\.0.count).max() ?? 0
        return rows.map { "\($0.0.padding(toLength: width, withPad: " ", startingAt: 0))  \($0.1.visible)" }
    }

    /// What is wrong with the place of the finished file; nil if its file is there.
    private var lost: String? {
        guard record.hasLostFile, let isGone = record.isFileGone else { return nil }
        return isGone ? "the file is gone" : "the file has another length than fk left it with"
    }

    /// Whether the finished file survives a power cut.
    private var synced: String? {
        guard let isOnDisk = record.isOnDisk else { return nil }
        if isOnDisk { return "yes, it is on the disk itself" }
        return record.needsProof()
            ? "no, and the system went down since: the next fk run checks the file"
            : "not yet; after a power cut the next fk run checks the file"
    }

    /// The task's history, newest last.
    var history: [String] {
        record.history.map { line in
            "  \(line.time.timestamp)  \(line.by): \(line.what)".visible
        }
    }

    /// Why the task is not running, in one sentence.
    ///
    /// - Parameters:
    ///   - isSilent: true if the process that runs the downloads is stopped or hung; the default is false.
    ///   - suggested: completes a command with the options that it needs here. The default adds none.
    func reason(
        engineRuns: Bool, isSilent: Bool = false, suggested: (String) -> String = { $0 }
    ) -> String {
        switch record.state {
        case .action where isSilent, .idle where isSilent: EngineText.reason
        case .complete:
            "\(record.path ?? "its file")\(base.map { " in base \($0.name)" } ?? ""), since \(record.finished.map(\.timestamp) ?? "an unknown time")"
                + (record.attempts > 0 ? ", after \(record.attempts.plural("attempt"))" : "")
                + (lost.map {
                    "; \($0); fetch it again with: \(suggested("fk retry \(record.id.short)")), then "
                        + suggested("fk run")
                } ?? "")
        case .error: record.error?.fullText ?? "it failed"
        case .suspend: "it was suspended; resume it with: \(suggested("fk resume \(record.id.short)"))"
        case .cancel: "it was cancelled; start again with: \(suggested("fk retry \(record.id.short)"))"
        case .action: "it is running"
        case .idle, .unknown:
            if let waiting = record.waiting, waiting.reason == .slot {
                "it is queued: \(waiting.text), or it is not part of the current run; \(suggested("fk run")) takes all"
            } else if engineRuns, record.waiting?.reason == .queue {
                "it is not part of the current run; \(suggested("fk run")) takes all"
            } else if let waiting = record.waiting, waiting.reason != .engine {
                waiting.text
            } else if engineRuns {
                "it is queued: all slots are taken, or it is not part of the current run; \(suggested("fk run")) takes all"
            } else {
                "no process runs the downloads of this work path; start with: \(suggested("fk run"))"
            }
        }
    }
}
