import FKMiddleware

/// The successful end of a run, and the report of a failed one to response middlewares.
extension TaskRun {
    /// Publishes the file once all bytes are there: at once if nothing has to be waited for.
    func finishSoon() {
        if hasOpenPieces { return wants(.comparePieces) }
        let publisher = Publisher(run: self)
        guard publisher.waitsForNothing else { return wants(.finish) }
        do throws(DownloadError) {
            try publisher.publishAtOnce()
            complete()
        } catch {
            fail(error)
        }
    }

    /// Publishes the file once all bytes are there.
    func finish(isolation: isolated (any Actor)? = #isolation) async {
        do throws(DownloadError) {
            try await Publisher(run: self).publish()
            complete()
        } catch {
            if stop != nil { return stopped() }
            fail(error)
        }
    }

    /// Completes the task.
    func complete() {
        writeSums()
        if entry.record.removeSetAside() { isRecordedComplete = false }
        if !isRecordedComplete { entry.record.finish(received: entry.received, at: clock.date) }
        counters?.store(0, entry.record.expected ?? 0)
        entry.record.forgetPart()
        entry.limiter = nil
        room.sync.add(entry)
        end(as: .complete)
        room.reuse.add(entry.record)
    }
}
