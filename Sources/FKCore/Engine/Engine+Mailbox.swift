import FKMiddleware
import Foundation

/// Requests of other processes. They run in the order in which they were posted, and before requests of this process.
///
/// Each request begins once the previous one has begun. By then all states have changed and are on disk; only the end
/// of running attempts, or the comparison of finished files, may be pending (`StartedRequest`). So a slow `suspend` for
/// all tasks followed by a `resume` has the same result as if they ran one after the other.
///
/// After a crash between a request's effect and its answer, the request runs a second time, before any later one.
/// Most requests have the same effect twice. A toggle, trash or forget is replaced in the mailbox by its result before it
/// runs. A request that is pending is replaced by what is left of it before the next one begins, because later ones
/// may change the same tasks: a second time undoes none of them.
extension Engine {
    /// Drains the requests that other processes have posted since the last call.
    func readMailbox() {
        problems.during { if try post.read() { Task { await handleMessages() } } }
    }

    /// Returns once the requests posted under earlier engines have begun. They are older than any request of this
    /// process.
    func afterLeftovers() async {
        if !post.hasRead, !ownership.isClosing, ownership.mayWrite { readMailbox() }
        guard post.isHandlingLeftovers, !isInChain else { return }
        await withCheckedContinuation { post.waitForLeftovers($0) }
    }

    private func handleMessages() async {
        while !ownership.isClosing, let batch = post.drainMessages() {
            for (index, (id, request)) in batch.enumerated() {
                // A closing engine leaves the remaining requests to the next engine.
                if ownership.isClosing { break }
                await handle(id, request, isLast: index == batch.count - 1)
            }
        }
        post.endHandling()
    }

    private func handle(_ id: MessageID, _ message: Result<EngineMessage, DownloadError>, isLast: Bool) async {
        switch message {
        case .failure(let error):
            problems.append(error)
            do {
                try post.mailbox.reply(to: id, .failed(error))
            } catch {
                problems.append("A request of another process could not be answered: \(error)")
            }
        case .success(let message): await handle(id, message, isLast: isLast)
        }
    }

    private func handle(_ id: MessageID, _ message: EngineMessage, isLast: Bool) async {
        var message = message
        // If no task is found, or the mailbox cannot be written, the request runs and is answered unchanged.
        if let resolved = (try? message.request.resolved(at: self)).map(message.with),
            (try? post.mailbox.replace(id, by: resolved)) != nil
        {
            message = resolved
        }
        let started = await attempt(message.request, message.own)
        // A client may read the barrel's file after its answer. The last of several requests saves for all of them.
        if isLast { barrels.saveAll() }
        switch started {
        case .failure(let error): answer(id, .failed(error))
        case .success(.done(let reply)): answer(id, message.form(reply))
        case .success(.waiting(let task, let rest)):
            do {
                try post.mailbox.replace(id, by: message.with(rest))
            } catch {
                problems.append("A request that is being performed could not be written: \(error)")
            }
            Task { [message] in
                let reply = await task.value
                if ownership.isClosing { return }
                barrels.saveAll()
                answer(id, message.form(reply))
            }
        }
    }

    private func answer(_ id: MessageID, _ reply: EngineReply) {
        // A closing engine refuses pending requests. They are left to the next engine.
        if case .failed(let error) = reply, error.code == .cancelled, ownership.isClosing { return }
        guard let error = post.mailbox.answer(id, reply) else { return }
        problems.append("A request of another process could not be answered yet: \(error.message)")
    }

    /// Performs a client's request. A request that was also posted is performed only once.
    ///
    /// - Parameter posted: the message's id, if the request is in the mailbox.
    /// - Returns: the answer; errors are `.failed`.
    package func answer(_ message: EngineMessage, posted: MessageID?) async -> EngineReply {
        await afterLeftovers()
        if let posted {
            do {
                if let reply = try post.mailbox.readReply(posted) ?? post.mailbox.drainUnwritten(posted) {
                    return reply
                }
                try post.mailbox.withdraw(posted)
            } catch {
                return .failed(DownloadError(wrapping: error, code: .disk, message: "The answer cannot be read."))
            }
        }
        return await answer(message)
    }
}
