import FKMiddleware
import Foundation

/// Requests of other processes, in the order of their posting and before whatever this process asks for.
///
/// Each begins once the one before it has begun: everything is decided and every state changed by then, only the end of
/// running attempts may still be waited for (`Begun`). So a slow `suspend` for all and a `resume` behind it come to what
/// they would one after the other.
///
/// After a kill between the act and the answer a request is carried out a second time, before any later one. Most mean the
/// same the second time. What a toggle or a trash comes to is written into the mailbox before it is done.
extension Engine {
    /// Takes what other processes have asked for since the last look.
    func readMailbox() {
        if post.read() { Task { await handleMessages() } }
    }

    /// Returns once the requests that earlier engines have left are under way: they are older than any of this process.
    func afterLeftovers() async {
        if !post.hasRead, !tenure.isClosing, tenure.mayWrite { readMailbox() }
        guard post.isHandlingLeftovers, !isInChain else { return }
        await withCheckedContinuation { post.waitForLeftovers($0) }
    }

    private func handleMessages() async {
        while !tenure.isClosing, let batch = post.takeMessages() {
            for (index, (id, request)) in batch.enumerated() {
                // What a closing engine has not done is left for the next one.
                if tenure.isClosing { break }
                await handle(id, request, isLast: index == batch.count - 1)
            }
        }
        post.endHandling()
    }

    private func handle(_ id: MessageID, _ request: Result<EngineRequest, DownloadError>, isLast: Bool) async {
        switch request {
        case .failure(let error):
            problems.append(error.message)
            do {
                try post.mailbox.reply(to: id, .failed(error))
            } catch {
                problems.append("A request of another process could not be answered: \(error)")
            }
        case .success(let request):
            let begun = await begin(prepared(request, id))
            // Who has an answer may read the barrel's file; of several requests at once the last one saves for all.
            if isLast { barrels.saveAll() }
            switch begun {
            case .done(let reply): answer(id, reply)
            case .waiting(let task):
                Task {
                    let reply = await task.value
                    if tenure.isClosing { return }
                    barrels.saveAll()
                    answer(id, reply)
                }
            }
        }
    }

    /// What is not the same the second time is replaced in the mailbox by what it comes to now.
    private func prepared(_ request: EngineRequest, _ id: MessageID) -> EngineRequest {
        do {
            let choices: [VerbChoice]
            switch request {
            case .toggle(let selector): choices = try control.choose(selector, StateMachine.toggled)
            case .verb(.trash, let selector): choices = try control.choose(selector) { _ in .trash }
            default: return request
            }
            try post.mailbox.replace(id, by: .chosen(choices))
            return .chosen(choices)
        } catch {
            // Nothing found, or nothing can be written: carried out, and answered, as it is.
            return request
        }
    }

    private func answer(_ id: MessageID, _ reply: EngineReply) {
        // A closing engine refuses what it has not done: that is for the next one.
        if case .failed(let error) = reply, error.code == .cancelled, tenure.isClosing { return }
        guard let error = post.mailbox.answer(id, reply) else { return }
        problems.append("A request of another process could not be answered yet: \(error.message)")
    }

    /// A client's request: one that it has posted is carried out in its turn.
    package func perform(_ request: EngineRequest, posted: MessageID?) async -> EngineReply {
        await afterLeftovers()
        if let posted {
            do {
                if let reply = try post.mailbox.readReply(posted) ?? post.mailbox.takeUnwritten(posted) { return reply }
                try post.mailbox.withdraw(posted)
            } catch {
                return .failed(DownloadError(wrapping: error, code: .disk, message: "The answer cannot be read."))
            }
        }
        return await perform(request)
    }
}
