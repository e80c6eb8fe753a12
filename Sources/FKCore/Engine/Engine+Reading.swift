import FKMiddleware
import Foundation

/// What a reader may do now.
package struct ReadView: Sendable {
    /// The offset after the last byte that can be read without a gap.
    package var available: Int64
    /// The length of the file in bytes; nil while unknown.
    package var length: Int64?
    /// The file that has the bytes. It is there if the reader has none of this generation.
    package var file: ReadFile?
    /// The number of times that received bytes were dropped.
    package var generation = 0
    /// The last generation that nothing proves to be the same file as the one before. A reader that has read bytes of an earlier one
    /// must not continue.
    package var lostAt = 0
    /// Counts further ones; nil for a task of another engine.
    package var token: ReadFeed.Token?
    /// Why the file of that generation is not known to be the same.
    package var dropReason: DownloadError?
    /// The error that ends the reading behind the available bytes; nil while more may come.
    package var failure: DownloadError?
    /// True if nothing behind the last byte can make the file a failure: it is complete, or a stream, whose reader compares it.
    package var isFinal = false
    /// The digest that the whole file must have; nil without one.
    package var digest: Checksum?
    /// The digests of pieces that a list has given, without their bytes; nil without any.
    package var pieces: PieceDigests?

    package init(available: Int64, length: Int64?) { (self.available, self.length) = (available, length) }
}

/// Reading tasks of this engine while they are fetched.
extension Engine {
    /// Announces the stream of a task before it is added: its part file has the window alone, and it is never published.
    package func openStream(_ id: TaskID, _ ring: ByteRing, end: Int64?) -> Int {
        let feed = readers.feed(of: id) { ReadFeed(ring: ring, end: end) }
        ring.whenRoom { [weak self] in self?.soon { $0.readersMoved(of: id) } }
        return feed.add(at: ring.readerPosition)
    }

    package func openReader(_ id: TaskID, at position: Int64) -> Int {
        let feed = readers.feed(of: id) { ReadFeed() }
        book[id]?.feed = feed
        return feed.add(at: position)
    }

    /// Forgets a reader.
    package func closeReader(_ id: TaskID, _ number: Int) {
        guard let feed = readers[id] else { return }
        feed.remove(number)
        guard feed.isEmpty else { return }
        readers.remove(id)
        book[id]?.feed = nil
    }

    /// Waits until the bytes from `position` to `need` can be read, the file has ended, or nothing more comes.
    ///
    /// - Parameters:
    ///   - generation: that of the reader's file; nil if it has none.
    ///   - waitsForEnd: true waits at the end of a file until the task is complete.
    /// - Throws: `.notFound` if there is no such task; `.cancelled` if the waiting Swift task is cancelled or the engine closes.
    package func nextBytes(
        _ id: TaskID, _ number: Int, at position: Int64, need: Int64, generation: Int?, waitsForEnd: Bool = true
    ) async throws(DownloadError) -> ReadView {
        defer { readers[id]?.ended(number) }
        while true {
            if Task.isCancelled || ownership.isClosing {
                throw DownloadError(
                    .cancelled, Task.isCancelled ? "The reading was cancelled." : "The downloader is closed.")
            }
            guard let feed = readers[id] else {
                throw DownloadError(.cancelled, "The task was cancelled or forgotten while it was read.")
            }
            feed.move(number, to: position)
            let view = try view(of: id, feed, at: position, generation: generation)
            if view.available >= need || need == .max && view.length != nil || view.failure != nil
                || view.generation != generation ?? view.generation
                || (view.isFinal || !waitsForEnd) && position >= min(view.length ?? .max, feed.end ?? .max)
            {
                return view
            }
            await wait(id, feed, number, at: view.available, need: need)
        }
    }

    /// A piece that a stream's reader has compared is wrong, and is fetched again.
    package func refuse(piece index: Int, of id: TaskID) {
        guard let run = book[id]?.taskRun else { return }
        run.transfer?.readerRefused(piece: index)
        continueRun(run)
    }

    private func wait(_ id: TaskID, _ feed: ReadFeed, _ number: Int, at position: Int64, need: Int64) async {
        await withTaskCancellationHandler {
            await withCheckedContinuation { waiter in
                feed.wait(number, waiter)
                if Task.isCancelled { return feed.wake(number) }
                guard let run = book[id]?.taskRun, let counters = run.counters else { return }
                let ranges = run.entry.record.ranges
                let index = ranges.firstIndex { $0.start <= position && position < $0.end ?? .max }
                counters.wake(at: index) { [weak self] in self?.soon { $0.readers[id]?.wake() } }
                // A byte may have arrived before.
                if ReadPlanner.availableEnd(counters.applied(to: ranges), from: position) >= need {
                    return feed.wake(number)
                }
                run.transfer?.readersWait()
                continueRun(run)
            }
        } onCancel: { [weak self] in
            self?.soon { $0.readers[id]?.wake(number) }
        }
    }

    /// The reader of a stream has moved, and there is space for more bytes.
    func readersMoved(of id: TaskID) {
        guard let run = book[id]?.taskRun else { return }
        run.transfer?.readersMoved()
        continueRun(run)
    }

    private func view(
        of id: TaskID, _ feed: ReadFeed, at position: Int64, generation: Int?
    ) throws(DownloadError) -> ReadView {
        let isInMemory = book[id] != nil
        defer { if !isInMemory { book.unload(id) } }
        let found: TaskEntry?
        do { found = try book.find(id) } catch {
            throw DownloadError(wrapping: error, code: .disk, message: "The task could not be read.")
        }
        guard let entry = found, entry.isThere else {
            throw DownloadError(.cancelled, "The task was cancelled or forgotten while it was read.")
        }
        entry.feed = feed
        entry.refresh()
        let record = entry.record
        let ranges = entry.run?.counters?.applied(to: record.ranges) ?? record.ranges
        var view = ReadView(available: ReadPlanner.availableEnd(ranges, from: position), length: record.expected)
        if record.ranges.contains(where: { $0.end == nil }) { view.length = nil }
        view.generation = feed.generation
        view.lostAt = feed.lostAt
        view.token = feed.token
        view.dropReason = feed.dropReason
        view.digest = entry.expectedDigest
        view.pieces = record.task.optionsBox?.value.pieces
        if record.state == .complete || record.isPublished {
            view.available = max(position, record.expected ?? position)
        }
        view.isFinal = feed.ring != nil || record.state == .complete
        let needsFile = view.available > position && generation != feed.generation
        do throws(DownloadError) {
            if needsFile { view.file = try file(of: entry) }
        } catch {
            // A file that got its final name just now is found the next time.
            view.available = position
            view.failure = error
        }
        switch record.state {
        case .error: view.failure = record.error ?? DownloadError(.cancelled, "The download has failed.")
        case .cancel: view.failure = DownloadError(.cancelled, "The download was cancelled.")
        default: break
        }
        return view
    }

    private func file(of entry: TaskEntry) throws(DownloadError) -> ReadFile {
        if let part = entry.taskRun?.part { return try part.file.reader() }
        return try entry.record.readFile(home: workPath.destination(of: entry.record))
    }
}

extension TaskRecord {
    /// Opens the file that has the bytes: the finished one, or the part.
    ///
    /// - Parameter home: the task's destination.
    /// - Throws: `.notFound` if a finished file is gone; `.destination` if it was changed or cannot be opened.
    package func readFile(home: String) throws(DownloadError) -> ReadFile {
        if let path, state == .complete {
            let file = try ReadFile(path: path)
            // The birth of the file is not asked for.
            guard file.length == expected ?? file.length, written.map({ file.identity?.matches($0) ?? true }) ?? true
            else {
                throw DownloadError(
                    .destination,
                    "\(path) was changed since it was complete: its bytes are not those that were downloaded.")
            }
            return file
        }
        var failure = DownloadError(.notFound, "The task has no file.")
        guard let partName else { throw failure }
        for folder in partFolders(home: home) + [home] {
            do throws(DownloadError) { return try ReadFile(path: folder.path(of: partName)) } catch { failure = error }
        }
        throw failure
    }
}
