import FKCore
import FKMiddleware
import Foundation

/// A command of `fk` that was started for the page, while it runs and afterwards.
final class ToolJob: Sendable {
    enum State: String, Sendable {
        case running
        /// It ended with exit status 0.
        case done
        /// It ended with another status, or did not run.
        case failed
        /// A client ended it.
        case stopped
    }

    let number: Int
    let command: ToolCommand
    let started = Date()
    private let news = Locked(News())

    /// What the program has said so far.
    private struct News {
        var reader = ToolOutput()
        var state = State.running
        var status: Int32?
        var messages: [String] = []
        var finished: Date?
        var work: Task<Void, Never>?
    }

    /// How long a command may take. A synchronization waits for its downloads.
    static let timeLimit = Duration.seconds(7 * 86_400)

    init(_ number: Int, _ command: ToolCommand) {
        self.number = number
        self.command = command
    }

    var isRunning: Bool { news.withLock { $0.state == .running } }

    /// Starts the program; `ended` is called when it has ended.
    func start(_ program: String, workPath: String, ended: @escaping @Sendable () async -> Void) {
        // The options of the work path come first: what follows may be operands alone.
        var run = ProgramRun(
            [program] + command.words.prefix(2) + ["--work-path", workPath] + command.words.dropFirst(2),
            in: command.directory)
        run.timeLimit = Self.timeLimit
        // Sources find their credentials and endpoints as on the command line.
        run.variables = ProcessInfo.processInfo.environment.filter { !$0.key.hasPrefix("FK_") }
            .map { (name: $0.key, value: $0.value) }
        run.sink = { [news] bytes in
            news.withLock { $0.reader.append(bytes) }
            return true
        }
        let work = Task { [news, run] in
            let result = await Self.end(of: run)
            news.withLock { news in
                news.finished = Date()
                switch result {
                case .success(let end):
                    news.status = end.status
                    news.messages = ToolOutput.messages(end.errors)
                    if news.state == .running { news.state = end.status == 0 ? .done : .failed }
                case .failure(let error):
                    if news.state == .running { news.state = .failed }
                    if error.code != .cancelled { news.messages = [error.text] }
                }
            }
            await ended()
        }
        news.withLock { $0.work = work }
    }

    private static func end(of run: ProgramRun) async -> Result<ProgramRun.End, DownloadError> {
        do throws(DownloadError) { return .success(try await run.end()) } catch { return .failure(error) }
    }

    /// Ends the program and its children. What it has handed to the engine stays.
    func stop() {
        let work = news.withLock { news in
            if news.state == .running { news.state = .stopped }
            return news.work
        }
        work?.cancel()
    }

    /// What clients see.
    ///
    /// - Parameter hasFiles: false leaves the list of files out.
    func document(hasFiles: Bool) -> JSON {
        news.withLock { news in
            var members: [JSON.Member] = [
                .init("id", JSON(number)), .init("kind", .string(command.kind.rawValue)),
                .init("title", .string(command.title.visible)),
                .init("state", .string(news.state.rawValue)), .init("status", JSON(news.status.map { Int($0) })),
                .init("started", JSON(started)), .init("finished", JSON(news.finished)),
                .init("messages", JSON(news.messages)), .init("sums", news.reader.sums),
                .init("result", news.reader.result ?? .null),
            ]
            if hasFiles { members.append(.init("files", .array(news.reader.files))) }
            return .object(members)
        }
    }
}

/// Reads the lines of JSON that a command of `fk` writes.
struct ToolOutput: Sendable {
    /// The most bytes of a line; a longer one is skipped.
    static let maxLine = 64 << 10
    /// The number of files that are kept. The sums count all.
    static let maxFiles = 1_000
    /// The number of messages that are kept.
    static let maxMessages = 50

    /// `{"result", "name", "size", "url"}` each.
    private(set) var files: [JSON] = []
    /// The object that a command ends with, such as the version of a published set.
    private(set) var result: JSON?
    private var counts: [String: (count: Int, bytes: Int64)] = [:]
    private var rest: [UInt8] = []
    private var isTooLong = false

    /// The words of `result`, in the order in which they are shown.
    private static let words = ["new", "changed", "same", "gone", "deleted"]

    /// The number of files and their bytes, by their results.
    var sums: JSON {
        .object(
            Self.words.compactMap { word in
                counts[word].map {
                    .init(word, .members(["count": JSON($0.count), "bytes": .integer($0.bytes)]))
                }
            })
    }

    mutating func append(_ bytes: [UInt8]) {
        var left = bytes[...]
        while let end = left.firstIndex(of: 0x0a) {
            if !isTooLong, rest.count + (end - left.startIndex) <= Self.maxLine { line(rest + left[..<end]) }
            (rest, isTooLong) = ([], false)
            left = left[(end + 1)...]
        }
        if rest.count + left.count > Self.maxLine { (rest, isTooLong) = ([], true) }
        if !isTooLong { rest += left }
    }

    private mutating func line(_ bytes: [UInt8]) {
        guard let json = JSON(parsing: bytes), json.object != nil else { return }
        if let word = json["result"]?.string, Self.words.contains(word), let name = json["name"]?.string {
            let size = json["size"]?.integer
            let sum = counts[word] ?? (0, 0)
            counts[word] = (sum.count + 1, sum.bytes.addingReportingOverflow(max(0, size ?? 0)).partialValue)
            guard files.count < Self.maxFiles else { return }
            files.append(
                .members([
                    "name": .string(name), "result": .string(word), "size": JSON(size),
                    "url": .string(json["url"]?.string ?? ""),
                ]))
        } else if json["version"] != nil || json["event"] == "summary" {
            result = json
        }
    }

    /// The lines of standard error as people read them: without the program's name, and without what speaks of the command line's help.
    static func messages(_ bytes: [UInt8]) -> [String] {
        let lines = String(decoding: bytes, as: UTF8.self).split(whereSeparator: \.isNewline)
        let texts = lines.map { $0.hasPrefix("fk: ") ? $0.dropFirst(4) : $0 }.filter { !$0.hasPrefix("Try 'fk help") }
        let shown = texts.prefix(maxMessages).map { String($0).visible }
        return texts.count > maxMessages ? shown + ["and \(texts.count - maxMessages) more lines"] : shown
    }
}
