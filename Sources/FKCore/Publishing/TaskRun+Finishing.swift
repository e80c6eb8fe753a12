import FKMiddleware

/// The end of a run that went well, and what others hear of one that did not.
extension TaskRun {
    /// The bytes are all there: makes the finished file of them, now where nothing has to be waited for.
    func finishSoon() {
        let publisher = Publisher(run: self)
        guard publisher.waitsForNothing else { return wants(.finish) }
        do throws(DownloadError) {
            try publisher.publishAtOnce()
            complete()
        } catch {
            fail(error)
        }
    }

    /// The bytes are all there: makes the finished file of them.
    func finish(isolation: isolated (any Actor)? = #isolation) async {
        do throws(DownloadError) {
            try await Publisher(run: self).publish()
            complete()
        } catch {
            if stop != nil { return stopped() }
            fail(error)
        }
    }

    /// The end of a task that went well.
    func complete() {
        if entry.record.removeSetAside() { isRecordedComplete = false }
        if !isRecordedComplete { entry.record.finish(received: entry.received, at: clock.date) }
        counters?.store(0, entry.record.expected ?? 0)
        entry.record.forgetPart()
        entry.limiter = nil
        room.sync.add(entry)
        end(as: .complete)
    }

    /// After the last attempt has failed, response middlewares hear of it. What they throw changes nothing.
    func tellResponseChain(_ error: DownloadError) {
        let chain = entry.middlewares(of: room.chains.response)
        guard !chain.isEmpty, let context = entry.context else { return }
        let response = DownloadResponse(task: context, response: head?.httpURLResponse, error: error)
        Task { _ = await ResponseChainEnd.run(chain, response) }
    }
}
