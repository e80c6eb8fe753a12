import FKCore
import FKMiddleware

/// Shows the engine's reply to a request and turns it into an exit status.
struct Answers: Sendable {
    let global: GlobalOptions
    let context: CommandContext

    init(_ global: GlobalOptions, _ context: CommandContext) {
        self.global = global
        self.context = context
    }

    /// Writes problems that occurred beside the request, such as a quarantined file.
    func warn(_ problems: [String]) {
        for problem in problems {
            context.errors.writeLine("fk: warning: \(Escaping.visible(OptionNames.inCommandLine(problem)))")
        }
    }

    /// Shows any reply.
    func status(of reply: EngineReply) -> Int32 {
        switch reply {
        case .added(let list): return added(list, then: "start with: \(global.suggested("fk run"))")
        case .verbs(let results): return verbs(results)
        case .done(let note):
            if global.json {
                JSONOutput(context.output).line(DoneDocument(note: note))
            } else {
                say(note)
            }
            return ExitStatus.done
        case .limits(let report): return limits(report)
        case .count(let count):
            say(Plural.count(count, "task"))
            return ExitStatus.done
        case .failed(let error):
            fail(error)
            return Dispatcher.status(of: error.code)
        }
    }

    /// Shows the result of added tasks.
    func added(_ list: [EngineReply.Added], then next: String) -> Int32 {
        let failed = list.compactMap(\.error)
        failed.forEach(fail)
        if global.json {
            JSONOutput(context.output).array(list, isIndented: false) { JSONOutput.encode(AddedDocument($0)) }
        } else {
            let new = list.count { $0.isNew }
            let known = list.count - failed.count - new
            var parts = ["\(new) added"]
            if known > 0 { parts.append("\(known) known already") }
            if !failed.isEmpty { parts.append("\(failed.count) failed") }
            say("\(parts.joined(separator: ", ")); \(next)")
        }
        return failed.isEmpty ? ExitStatus.done : ExitStatus.taskFailed
    }

    /// Shows the results of a verb, one line per task. A verb that does not apply is reported but is not a failure.
    ///
    /// - Parameter forAll: true if the verb was given to all tasks: only those that it changed have a line.
    func verbs(_ results: [VerbResult], forAll: Bool = false) -> Int32 {
        if global.json {
            JSONOutput(context.output).array(results, isIndented: false) { JSONOutput.encode(VerbDocument($0)) }
            return ExitStatus.done
        }
        if results.isEmpty { say("There are no tasks.") }
        let shown = forAll ? results.filter(\.applied) : results
        for result in shown.prefix(shown.count > 50 ? 20 : 50) {
            say("\(result.id.short)  \(URLMasking.mask(result.url))  \(result.note)")
        }
        let changed = results.count(where: \.applied)
        if shown.count > 50 {
            say("… and \(shown.count - 20) more: \(changed) of \(results.count) changed in all")
        } else if forAll, changed < results.count {
            let rest = Formatting.count(results.count - changed, "task")
            say(
                changed == 0
                    ? "Nothing to do: it applies to none of \(rest)." : "\(changed) changed, \(rest) unchanged.")
        }
        return ExitStatus.done
    }

    /// Writes a line of the result, unless the output is quiet.
    func say(_ text: String) {
        if !global.quiet { context.output.writeLine(Escaping.visible(text)) }
    }

    private func fail(_ error: DownloadError) {
        context.errors.writeLine("fk: \(Escaping.visible(error.fullText))")
    }
}

private struct DoneDocument: Encodable {
    let done = true
    let note: String
}

private struct AddedDocument: Encodable {
    let id: String
    let state: String
    let new: Bool
    @OrNull var error: ErrorDocument?

    init(_ added: EngineReply.Added) {
        id = added.id.hex
        state = added.state.rawValue
        new = added.isNew
        error = added.error.map(ErrorDocument.init)
    }
}

private struct VerbDocument: Encodable {
    let id: String
    let url: String
    let verb: String
    let before: String
    let after: String
    let applied: Bool
    let note: String

    init(_ result: VerbResult) {
        id = result.id.hex
        url = URLMasking.mask(result.url)
        verb = result.verb.rawValue
        before = result.before.rawValue
        after = result.after.rawValue
        applied = result.applied
        note = result.note
    }
}
