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
    /// A request that has had its effect on the states of all tasks.
    enum Begun: Sendable {
        case done(EngineReply)
        /// Attempts are still being stopped, or finished files compared.
        case waiting(Task<EngineReply, Never>)

        var reply: EngineReply {
            get async {
                switch self {
                case .done(let reply): reply
                case .waiting(let task): await task.value
                }
            }
        }
    }

    /// Takes what other processes have asked for since the last look.
    func readMailbox() {
        mailbox.writeReplies()
        hasReadMailbox = true
        if mailbox.hasNews() { messages += mailbox.take() }
        guard !isReadingMessages else { return }
        guard !messages.isEmpty else { return hasHandledLeftovers = true }
        isReadingMessages = true
        Task { await handleMessages() }
    }

    /// Returns once the requests that earlier engines have left are under way: they are older than any of this process.
    func afterLeftovers() async {
        if !hasReadMailbox, !isClosing, mayWrite { readMailbox() }
        guard !hasHandledLeftovers, isReadingMessages, !MiddlewareCall.isInside(ObjectIdentifier(self), .chain) else {
            return
        }
        await withCheckedContinuation { whenLeftoversHandled.append($0) }
    }

    private func handleMessages() async {
        while !messages.isEmpty, !isClosing {
            let batch = messages
            messages = []
            for (index, (id, request)) in batch.enumerated() {
                // What a closing engine has not done is left for the next one.
                if isClosing { break }
                await handle(id, request, isLast: index == batch.count - 1)
            }
        }
        isReadingMessages = false
        hasHandledLeftovers = true
        whenLeftoversHandled.forEach { $0.resume() }
        whenLeftoversHandled = []
    }

    private func handle(_ id: MessageID, _ request: Result<EngineRequest, DownloadError>, isLast: Bool) async {
        switch request {
        case .failure(let error):
            problems.append(error.message)
            do {
                try mailbox.reply(to: id, .failed(error))
            } catch {
                problems.append("A request of another process could not be answered: \(error)")
            }
        case .success(let request):
            let begun = await begin(prepared(request, id))
            // Who has an answer may read the barrel's file; of several requests at once the last one saves for all.
            if isLast { saveAllBarrels() }
            switch begun {
            case .done(let reply): answer(id, reply)
            case .waiting(let task):
                Task {
                    let reply = await task.value
                    if isClosing { return }
                    saveAllBarrels()
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
            case .toggle(let selector): choices = try choose(selector, Self.toggled)
            case .verb(.trash, let selector): choices = try choose(selector) { _ in .trash }
            default: return request
            }
            try mailbox.replace(id, by: .chosen(choices))
            return .chosen(choices)
        } catch {
            // Nothing found, or nothing can be written: carried out, and answered, as it is.
            return request
        }
    }

    private func answer(_ id: MessageID, _ reply: EngineReply) {
        // A closing engine refuses what it has not done: that is for the next one.
        if case .failed(let error) = reply, error.code == .cancelled, isClosing { return }
        guard let error = mailbox.answer(id, reply) else { return }
        problems.append("A request of another process could not be answered yet: \(error.message)")
    }

    /// A client's request: one that it has posted is carried out in its turn.
    package func perform(_ request: EngineRequest, posted: MessageID?) async -> EngineReply {
        await afterLeftovers()
        if let posted {
            do {
                if let reply = try mailbox.readReply(posted) ?? mailbox.takeUnwritten(posted) { return reply }
                try mailbox.withdraw(posted)
            } catch {
                return .failed(DownloadError(wrapping: error, code: .disk, message: "The answer cannot be read."))
            }
        }
        return await perform(request)
    }
}
