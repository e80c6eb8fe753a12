import FKCore
import FKManifests
import FKMiddleware
import Foundation

/// A reference to existing tasks on the command line.
enum TaskReference: Sendable, Hashable {
    /// All tasks of that URL, as typed.
    case url(String)
    /// The tasks of an object of a bucket, as typed: s3://BUCKET/KEY.
    case object(String)
    /// The task whose id starts with these lower-case hexadecimal digits, 6 to 64 of them; without one, the file's name.
    case idPrefix(String)
    /// The tasks whose file has this name.
    case name(String)
    /// The task whose file has this path, as typed.
    case path(String)
    /// The tasks whose file's name matches a pattern with `*`, `?` or `[…]`.
    case glob(String)

    init(_ text: String) {
        let digits = text.lowercased()
        if text.contains("://") {
            self = SourceReference(text)?.namesObject == true ? .object(text) : .url(text)
        } else if text.contains(where: { "*?[".contains($0) }) {
            self = .glob(text)
        } else if text.utf8.contains(UInt8(ascii: "/")) {
            self = .path(text)
        } else if (6...64).contains(digits.utf8.count), digits.utf8.count == digits.count,
            digits.allSatisfy(\.isHexDigit)
        {
            self = .idPrefix(digits)
        } else {
            self = .name(text)
        }
    }

    /// True for an operand that can be the name of several files.
    static func isName(_ operand: String) -> Bool {
        switch Self(operand) {
        case .url, .object: false
        case .idPrefix, .name, .path, .glob: true
        }
    }

    var isGlob: Bool { if case .glob = self { true } else { false } }

    static let operand = OperandSpec(
        "task", "the task: its URL, the beginning of its id, or its file's name or path", hint: .tasks)

    static func operands(_ least: Int) -> OperandSpec {
        OperandSpec(
            "task", "URLs, beginnings of ids, files' names or paths, or quoted patterns such as '*.iso'", least, nil,
            hint: .tasks)
    }

    /// The records of the tasks, at least one.
    ///
    /// - Throws: `.notFound`; `.invalidArgument` for an id that several tasks begin with.
    func records(_ reader: StoreReader) throws -> [TaskRecord] {
        switch self {
        case .url(let text):
            let url = try text.normalizedURL()
            var unnamed: DownloadError?
            let records = try reader.records(url: url) { if $0.remedy == .nameBase { unnamed = $0 } }
            guard records.isEmpty else { return records }
            if let unnamed { throw unnamed }
            throw DownloadError(.notFound, "There is no task of that URL.", url: url.masked)
        case .object(let text):
            let name = ListOrigin(text, signer: nil).name
            let records = try reader.records { $0.task.optionsBox?.value.list?.name.isExactly(name) == true }
            guard records.isEmpty else { return records }
            throw DownloadError(
                .notFound,
                "There is no task of the object '\(text)'. Tasks of a whole bucket are known by the URLs of their files: 'fk list' shows "
                    + "them.")
        case .idPrefix(let prefix):
            do {
                return [try reader.record(idPrefix: prefix)]
            } catch let error as DownloadError where error.code == .notFound {
                return try Self.name(prefix).records(reader)
            }
        case .name(let name):
            let records = try reader.records { DownloadInfo($0).shownName.isExactly(name) }
            guard records.isEmpty else { return records }
            throw Self.unknown(name)
        case .path(let text):
            let path = try Paths.absolute(text, from: ProcessInfo.currentFolder ?? "")
            let records = try reader.records { CommonFolder.place(of: $0).isExactly(path) }
            guard records.isEmpty else { return records }
            throw Self.unknown(text)
        case .glob(let text):
            let exact = try reader.records { DownloadInfo($0).shownName.isExactly(text) }
            guard exact.isEmpty else { return exact }
            let pattern = text.pathPattern
            let records = try reader.records { pattern.matches(DownloadInfo($0).shownName) }
            guard records.isEmpty else { return records }
            throw DownloadError(.notFound, "No file's name matches '\(text)'.")
        }
    }

    /// The selectors for a request that changes the tasks.
    ///
    /// - Parameter all: true selects all files of a name. The default is false.
    /// - Throws: `CommandFailure` with a list for a name that several tasks have; the errors of `records`.
    func selectors(in global: GlobalOptions, all: Bool = false) throws -> [TaskSelector] {
        if case .url(let text) = self { return [.url(try text.normalizedURL())] }
        let records = try recordsHere(global)
        if case .glob = self { return records.map { .id($0.id) } }
        guard records.count == 1 || all else { throw Self.several(records, advice: ", --all for all of them,") }
        return records.map { .id($0.id) }
    }

    /// The records in the work path alone.
    ///
    /// - Throws: the errors of `records`; `.notFound` names the work path of a shard that has the task.
    private func recordsHere(_ global: GlobalOptions) throws -> [TaskRecord] {
        do {
            return try records(global.openReader())
        } catch let error as DownloadError where error.code == .notFound {
            guard let query = try? global.openQuery(), let record = try? records(query).first else { throw error }
            throw DownloadError(
                .notFound,
                "\(record.id.short) is in a shard, and verbs act on one work path: add "
                    + "--work-path \(query.home(of: record.id).root.shellWord).")
        }
    }

    /// - Throws: `CommandFailure` with a list for several; the errors of `records`.
    func only(_ reader: StoreReader) throws -> TaskRecord {
        let records = try records(reader)
        guard records.count == 1 else { throw Self.several(records, advice: "") }
        return records[0]
    }

    private static func unknown(_ text: String) -> DownloadError {
        DownloadError(
            .notFound,
            "There is no task '\(text)': give a URL, the first 6 or more digits of an id, or a file's name, as 'fk list' "
                + "shows them, or a file's path.")
    }

    private static func several(_ records: [TaskRecord], advice: String) -> CommandFailure {
        var lines = records.prefix(8).map { record in
            "  \(record.id.short)  \(Columns.pad(record.state.shown, to: 9))  \(record.task.url.masked)"
        }
        if records.count > 8 { lines.append("  and \(records.count - 8) more") }
        return CommandFailure(
            "\(records.count) tasks match. Give an id\(advice) or a pattern:", lines: lines, status: ExitStatus.usage)
    }
}
