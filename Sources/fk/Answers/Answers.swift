import FKCore
import FKMiddleware

/// Shows the engine's reply to a request and turns it into an exit status.
struct Answers: Sendable {
    let context: CommandContext
    var global: GlobalOptions { context.global }

    init(_ context: CommandContext) {
        self.context = context
    }

    /// Performs a request, and writes the problems that occurred beside it.
    ///
    /// - Throws: same as `EngineClient.perform`.
    func perform(_ request: EngineMessage) async throws -> EngineReply {
        let (reply, problems) = try await EngineClient.reportingSilence(global.configure, context).perform(request)
        warn(problems)
        return reply
    }

    /// - Returns: the exit status.
    func answer(_ request: EngineMessage) async throws -> Int32 { status(of: try await perform(request)) }

    /// Writes problems that occurred beside the request, such as a quarantined file.
    func warn(_ problems: [String]) {
        problems.forEach(context.warn)
    }

    /// Shows any reply.
    func status(of reply: EngineReply) -> Int32 {
        switch reply {
        case .added:
            var answers = AddedAnswers(context)
            answers.absorb(reply, [])
            return answers.end(then: "start with: \(global.suggested("fk run"))")
        case .verbs:
            var answers = VerbAnswers(context, forAll: false)
            answers.absorb(reply, [])
            return answers.end()
        case .done(let note):
            if global.json {
                JSONOutput(context.output).line(.members(["done": true, "note": .string(note)]))
            } else {
                say(note)
            }
            return ExitStatus.done
        case .limits(let report): return limits(report)
        case .count(let count):
            say(count.plural("task"))
            return ExitStatus.done
        case .failed(let error):
            fail(error)
            return ExitStatus.of(error)
        }
    }

    /// Writes a line of the result, unless the output is quiet.
    func say(_ text: String) {
        if !global.quiet { context.output.writeLine(text.visible) }
    }

    func fail(_ error: DownloadError) {
        context.errors.writeLine("fk: \(error.fullText.visible)")
    }
}

/// Shows the results of a verb that come in portions: some lines, or a JSON array of all of them.
struct VerbAnswers {
    private let answers: Answers
    private let forAll: Bool
    private var array: JSONArrayOutput
    /// The first results that are shown.
    private var shown: [VerbResult] = []
    /// The first tasks, also those that did not change.
    private(set) var first: [TaskID] = []
    private var shownCount = 0
    private var changed = 0
    private var count = 0
    /// The tasks whose file could not be deleted.
    private var failed = 0
    /// The reply to a request that failed or has no results; nil if there was none.
    private(set) var failure: EngineReply?

    /// So many results are shown whole, and of more the first `fewLines`.
    private static let maxLines = 50
    private static let fewLines = 20

    /// - Parameter forAll: true shows only the tasks that changed.
    init(_ context: CommandContext, forAll: Bool) {
        answers = Answers(context)
        array = JSONOutput(context.output).beginArray(isIndented: false)
        self.forAll = forAll
    }

    mutating func absorb(_ reply: EngineReply, _ problems: [String]) {
        answers.warn(problems)
        guard case .verbs(let results) = reply else {
            failure = reply
            return
        }
        count += results.count
        changed += results.count(where: \.applied)
        first += results.prefix(Self.maxLines - first.count).map(\.id)
        if answers.global.json {
            array.write(results) { $0.document.bytes }
        }
        // A trash applies in every state, unless the file cannot be deleted.
        failed += results.count { $0.verb == .trash && !$0.applied }
        for result in results where !forAll || result.applied || result.verb == .trash {
            shownCount += 1
            if shown.count < Self.maxLines { shown.append(result) }
        }
    }

    /// - Parameter none: the line if there was no task.
    /// - Returns: the exit status.
    func end(none: String = "There are no tasks.") -> Int32 {
        if answers.global.json, failure == nil || !array.isEmpty { array.end() }
        if let failure { return answers.status(of: failure) }
        if answers.global.json { return failed == 0 ? ExitStatus.done : ExitStatus.taskFailed }
        if count == 0 { answers.say(none) }
        for result in shown.prefix(shownCount > Self.maxLines ? Self.fewLines : Self.maxLines) {
            answers.say("\(result.id.short)  \(result.url.masked)  \(result.note)")
        }
        if shownCount > Self.maxLines {
            answers.say("… and \(shownCount - Self.fewLines) more: \(changed) of \(count) changed in all")
        } else if forAll, changed < count {
            let rest = (count - changed).plural("task")
            switch (changed, failed) {
            case (1..., _): answers.say("\(changed) changed, \(rest) unchanged.")
            case (_, 1...): answers.say("Nothing was deleted: \(rest) unchanged.")
            default: answers.say("Nothing to do: it applies to none of \(rest).")
            }
        }
        return failed == 0 ? ExitStatus.done : ExitStatus.taskFailed
    }
}

/// Shows the replies to a list of tasks that is added in portions: counts, or a JSON array of all tasks.
struct AddedAnswers {
    private let answers: Answers
    private var array: JSONArrayOutput
    private var new = 0
    private var known = 0
    private var changed = 0
    private var failed = 0
    /// The finished files of which a listing has another version.
    private var outdated = 0
    private(set) var failure: DownloadError?
    /// The tasks that were added or found.
    private(set) var ids: [TaskID] = []
    private let keepsIDs: Bool

    /// - Parameter keepsIDs: true collects `ids`; the default is false.
    init(_ context: CommandContext, keepsIDs: Bool = false) {
        answers = Answers(context)
        array = JSONOutput(context.output).beginArray(isIndented: false)
        self.keepsIDs = keepsIDs
    }

    /// Adds tasks and shows the replies as they come.
    ///
    /// - Parameter orders: those of the command; their limits are for the tasks.
    /// - Throws: same as `EngineClient.add`.
    mutating func add(_ addition: TaskAddition, by orders: RunOrders? = nil, _ configure: Configure) async throws {
        let client = EngineClient.reportingSilence(configure, answers.context)
        let replies = Locked(self)
        try await client.add(addition, own: orders?.own) { reply, problems in
            replies.withLock { $0.absorb(reply, problems) }
        }
        self = replies.withLock(\.self)
    }

    mutating func absorb(_ reply: EngineReply, _ problems: [String]) {
        answers.warn(problems)
        guard case .added(let list) = reply else {
            if case .failed(let error) = reply { failure = error }
            return
        }
        if answers.global.json {
            array.write(list) { added in
                JSON.members([
                    "error": added.error?.document ?? .null, "id": .string(added.id.hex), "new": .bool(added.isNew),
                    "state": .string(added.state.rawValue),
                ]).bytes
            }
        }
        for added in list {
            if let error = added.error {
                failed += 1
                answers.fail(error)
            } else {
                if added.isOutdated == true { outdated += 1 }
                if added.isNew { new += 1 } else if added.isChanged == true { changed += 1 } else { known += 1 }
                if keepsIDs { ids.append(added.id) }
            }
        }
    }

    /// Writes the end with what to do next, and returns the exit status.
    func end(then next: String) -> Int32 {
        if answers.global.json, failure == nil || !array.isEmpty { array.end() }
        if let failure { return answers.status(of: .failed(failure)) }
        if !answers.global.json {
            var parts = ["\(new) added"]
            if changed > 0 { parts.append("\(changed) changed") }
            if known > 0 { parts.append("\(known) known already") }
            if outdated > 0 {
                parts.append("\(outdated) of them with another version at the source, which 'fk barrel sync' fetches")
            }
            if failed > 0 { parts.append("\(failed) failed") }
            answers.say("\(parts.joined(separator: ", ")); \(next)")
        }
        return failed == 0 ? ExitStatus.done : ExitStatus.taskFailed
    }
}

extension VerbResult {
    fileprivate var document: JSON {
        .members([
            "after": .string(after.rawValue), "applied": .bool(applied), "before": .string(before.rawValue),
            "id": .string(id.hex), "note": .string(note), "url": .string(url.masked),
            "verb": .string(verb.rawValue),
        ])
    }
}
