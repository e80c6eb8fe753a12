import FKMiddleware
import Foundation

#if canImport(FoundationNetworking)
    import FoundationNetworking
#endif

/// From a slot to a request on the wire.
extension Engine {
    /// Begins an attempt of a task that has just got a slot.
    func start(_ entry: TaskEntry) {
        entry.record.attempts += 1
        entry.record.started = entry.record.started ?? clock.date
        entry.record.error = nil
        entry.record.waiting = nil
        change(entry, to: .action)
        do throws(DownloadError) {
            try begin(entry)
        } catch {
            // The folder may have gone since it was opened for an earlier task: open it anew, once.
            guard error.code == .destination, folders.removeValue(forKey: folderPath(of: entry)) != nil else {
                return fail(entry, error, resumed: false)
            }
            do throws(DownloadError) { try begin(entry) } catch { fail(entry, error, resumed: false) }
        }
    }

    private func begin(_ entry: TaskEntry) throws(DownloadError) {
        let folder = try folder(of: entry)
        if isPublished(entry.record) {
            if chains.response.isEmpty { return complete(entry) }
            try unpublish(entry, in: folder)
        }
        if let path = existingFile(for: entry, in: folder) { return try settleExisting(entry, path) }
        let attempt = try prepareAttempt(entry, in: folder)
        entry.attempt = attempt
        fetchNext(entry, attempt)
    }

    private func folderPath(of entry: TaskEntry) -> String {
        entry.record.task.directory ?? workPath.filesFolder(entry.id)
    }

    /// The task's destination, opened once and shared by all tasks that go there.
    private func folder(of entry: TaskEntry) throws(DownloadError) -> Folder {
        let path = folderPath(of: entry)
        let now = clock.now
        if let (folder, seen) = folders[path] {
            if now - seen < 1_000_000_000 { return folder }
            if folder.isStillThere {
                folders[path] = (folder, now)
                return folder
            }
        }
        let folder = try Folder(path: path)
        if folders.count >= 64 { folders.removeAll() }
        folders[path] = (folder, now)
        return folder
    }

    /// The file goes back to where it was before it got its final name: a response chain that was interrupted with its
    /// process runs again, or the name could not be synced.
    func unpublish(_ entry: TaskEntry, in folder: Folder) throws(DownloadError) {
        guard let path = entry.record.path, let part = entry.record.partName else { return }
        entry.record.path = nil
        // Where a middleware has moved it to another file system, it is copied: no byte is fetched twice.
        if Foundation.rename(path, folder.path(of: part)) == 0 { return }
        guard errno == EXDEV, (try? FileManager.default.moveItem(atPath: path, toPath: folder.path(of: part))) != nil
        else {
            throw diskError("take back", path)
        }
    }

    /// A foreign file under the name the task would get, as far as that is known before the server answers.
    private func existingFile(for entry: TaskEntry, in folder: Folder) -> String? {
        let task = entry.record.task
        switch task.options.existing {
        case .skip: break
        case .refuse: break
        case nil where task.fileName != nil: break
        default: return nil
        }
        let name = task.fileName ?? FileNameRules.name(url: task.url, head: nil)
        return folder.contains(name) ? folder.path(of: name) : nil
    }

    private func settleExisting(_ entry: TaskEntry, _ path: String) throws(DownloadError) {
        guard entry.record.task.options.existing == .skip else { throw fileExists(path) }
        entry.record.path = path
        entry.record.isForeign = true
        remember(entry, by: "existing", "\(path) was there already: nothing was fetched")
        let size = Int64((try? FileManager.default.attributesOfItem(atPath: path))?[.size] as? Int ?? 0)
        entry.record.expected = size
        entry.record.ranges = [SavedRange(start: 0, end: size, position: size)]
        complete(entry)
    }

    func fileExists(_ path: String) -> DownloadError {
        DownloadError(
            .fileExists,
            "\(path) exists and was not made by this task: use --overwrite, --rename or --skip, or another name.")
    }

    /// Opens the part file and compares it with what the record says is in it.
    private func prepareAttempt(_ entry: TaskEntry, in folder: Folder) throws(DownloadError) -> Attempt {
        let part: PartFile
        if let name = entry.record.partName, !entry.record.ranges.isEmpty, folder.contains(name) {
            part = try PartFile(in: folder, name: name)
            let length = part.openedLength
            for (index, range) in entry.record.ranges.enumerated() where range.position > length {
                remember(entry, by: "resume", "the part file is shorter than recorded: \(length) bytes")
                entry.record.ranges[index].position = max(range.start, length)
            }
        } else {
            if !entry.record.ranges.isEmpty { remember(entry, by: "resume", "the part file is gone: starting again") }
            entry.record.ranges = []
            part = try newPart(for: entry, in: folder)
        }
        return Attempt(
            folder: folder, part: part, counters: LiveCounters(entry.record.ranges),
            isResumed: entry.record.received > 0,
            url: entry.nextURL)
    }

    private func newPart(for entry: TaskEntry, in folder: Folder) throws(DownloadError) -> PartFile {
        let task = entry.record.task
        let name = FileNameRules.partName(
            for: task.fileName ?? FileNameRules.name(url: task.url, head: nil), id: entry.id)
        entry.record.partName = name
        let part = try PartFile(in: folder, name: name)
        guard part.openedLength > 0 else { return part }
        guard entry.isNew else {
            try part.truncate(to: 0)
            return part
        }
        // Its info file was lost: somebody may still want the bytes.
        part.close()
        _ = try folder.rename(name, to: "\(name).old", replacing: true)
        problems.append("A part file without an info file was kept as \(folder.path(of: "\(name).old")).")
        return try PartFile(in: folder, name: name)
    }

    // MARK: The request

    /// Asks for the next range that is missing, or goes on to verifying when none is.
    func fetchNext(_ entry: TaskEntry, _ attempt: Attempt) {
        let record = entry.record
        let range: SavedRange
        let index: Int
        if let next = SegmentPlanner.nextRange(in: record.ranges) {
            index = next
            range = record.ranges[next]
        } else if record.ranges.isEmpty {
            (index, range) = (0, SavedRange(start: 0, end: nil))
        } else {
            return verify(entry, attempt)
        }
        let known = ResumeRules.Known(
            length: record.expected, validator: record.validator, maxSize: record.task.options.maxSize)
        let ask = attempt.nextAsk ?? ResumeRules.ask(for: range, known: known)
        attempt.nextAsk = nil
        attempt.lastAsk = ask
        let request = request(for: entry, attempt, ask: ask)
        let chain = chains.request.ordered
        guard !chain.isEmpty, let context = entry.context else {
            return send(request, secret: [], ask: ask, known: known, index: index, entry, attempt)
        }
        attempt.chain = Task { [weak self, id = entry.id] in
            let result = await Self.run(chain, request, context)
            await self?.requestChainEnded(result, chain, ask: ask, known: known, index: index, id)
        }
    }

    private func request(for entry: TaskEntry, _ attempt: Attempt, ask: RangeAsk) -> URLRequest {
        // Every URL has been through URLNormalizer, so Foundation can read it.
        var request = URLRequest(url: URL(string: attempt.url) ?? URL(fileURLWithPath: "/"))
        for field in entry.record.task.options.headers ?? [] {
            request.addValue(field.value, forHTTPHeaderField: field.name)
        }
        ask.apply(to: &request)
        return request
    }

    private static func run(
        _ chain: [any RequestMiddleware], _ request: URLRequest, _ context: TaskContext
    ) async -> Result<URLRequest, DownloadError> {
        var request = request
        for middleware in chain {
            do {
                request = try await middleware.process(request, for: context)
            } catch {
                return .failure(
                    DownloadError(
                        wrapping: error, code: .middleware, message: "The request middleware \(middleware.name) failed."
                    ))
            }
        }
        return .success(request)
    }

    private func requestChainEnded(
        _ result: Result<URLRequest, DownloadError>, _ chain: [any RequestMiddleware], ask: RangeAsk,
        known: ResumeRules.Known,
        index: Int, _ id: TaskID
    ) {
        guard let entry = tasks[id], let attempt = entry.attempt else { return }
        attempt.chain = nil
        if attempt.stop != nil { return attemptStopped(entry, attempt) }
        switch result {
        case .success(var request):
            // The range is the engine's own: a middleware may see it, not change it.
            ask.apply(to: &request)
            let secret = Set(chain.flatMap(\.secretHeaders).map { $0.lowercased() })
            send(request, secret: secret, ask: ask, known: known, index: index, entry, attempt)
        case .failure(let error):
            fail(entry, error, resumed: attempt.isResumed)
        }
    }

    private func send(
        _ request: URLRequest, secret: Set<String>, ask: RangeAsk, known: ResumeRules.Known, index: Int,
        _ entry: TaskEntry,
        _ attempt: Attempt
    ) {
        let options = entry.record.task.options
        let receiver = RangeReceiver(
            plan: .init(
                ask: ask, known: known, index: index, segments: max(1, entry.record.ranges.count), part: attempt.part,
                counters: attempt.counters, limiters: limiters(for: entry), digest: options.checksum?.algorithm,
                inlineLimit: entry.hasCleanCounters && entry.record.received == 0 ? 256 << 10 : -1, clock: clock),
            onGate: { [inbox, id = entry.id] in inbox.post(.gate(id, $0)) },
            onEnd: { [inbox, id = entry.id] in inbox.post(.end(id, $0)) })
        attempt.receiver = receiver
        let secret = secret.union((options.secretHeaders ?? []).map { $0.lowercased() })
        attempt.operation = transport.start(
            TransportRequest(
                urlRequest: request, secretHeaders: secret,
                options: options.transportOptions(over: configure.transport)),
            handler: receiver)
    }

    private func limiters(for entry: TaskEntry) -> [RateLimiter] {
        guard let rate = entry.record.task.options.rateLimit else { return [totalLimiter] }
        let limiter = taskLimiters[entry.id] ?? RateLimiter(rate: rate, now: clock.now)
        taskLimiters[entry.id] = limiter
        return [limiter, totalLimiter]
    }

    // MARK: The gate

    /// The head of a body that is worth a record has arrived: write it down before a byte is overwritten.
    func openGate(_ entry: TaskEntry, _ attempt: Attempt, _ receiver: RangeReceiver) {
        do throws(DownloadError) {
            // The counters first: until the record follows, they count for nothing it says.
            entry.hasCleanCounters = false
            try attach(attempt.counters, entry)
            try adopt(receiver, entry, attempt)
            try save(entry)
        } catch {
            // The transfer ends with this error instead of its own.
            attempt.diskError = error
            attempt.operation?.cancel()
            return
        }
        account(entry)
        receiver.openGate()
        attempt.operation?.resume()
    }

    private func attach(_ counters: LiveCounters, _ entry: TaskEntry) throws(DownloadError) {
        guard !counters.isAttached else { return }
        do {
            try counters.attach(path: workPath.infoPath(entry.id))
        } catch {
            throw DownloadError(wrapping: error, code: .disk, message: "The info file could not be mapped.")
        }
    }

    /// Takes over into the record what a response head says about the file.
    func adopt(_ receiver: RangeReceiver, _ entry: TaskEntry, _ attempt: Attempt) throws(DownloadError) {
        guard let head = receiver.head, let decision = receiver.decision else { return }
        attempt.head = head
        let total: Int64?
        switch decision {
        case .append(_, _, let length):
            total = length
            if entry.record.ranges.isEmpty {
                entry.record.ranges = [SavedRange(start: 0, end: length)]
                entry.rangesChanged = true
            }
        case .startOver(let length):
            total = length
            if entry.record.received > 0 {
                remember(
                    entry, by: "resume",
                    "the server sends the file from its beginning: \(entry.record.received) bytes dropped")
                try attempt.part.truncate(to: 0)
            }
            entry.record.ranges = [SavedRange(start: 0, end: length)]
            entry.rangesChanged = true
            attempt.counters.store(0, receiver.position)
            entry.record.validator = nil
        default: return
        }
        if case .startOver = decision { entry.record.expected = nil }
        entry.record.expected = total ?? entry.record.expected
        if entry.record.ranges.count == 1, entry.record.ranges[0].end == nil { entry.record.ranges[0].end = total }
        let validator = ResumeRules.validator(of: head)
        if entry.record.validator == nil { entry.record.validator = validator }
        entry.record.response = head.essentials
    }
}

extension RangeAsk {
    /// Sets or removes `Range` and `If-Range` (RFC 9110 sections 14.2 and 13.1.5).
    func apply(to request: inout URLRequest) {
        request.setValue(rangeHeader, forHTTPHeaderField: "Range")
        request.setValue(rangeHeader == nil ? nil : ifRange, forHTTPHeaderField: "If-Range")
    }
}

extension ResponseHead {
    private static let kept = [
        "content-type", "content-length", "content-range", "content-disposition", "etag", "last-modified", "date",
        "accept-ranges",
    ]

    /// The head as it is kept in an info file: only fields that say something about the file, and of the URL nothing that
    /// a request middleware may have signed it with.
    var essentials: ResponseHead {
        var head = self
        head.url = URLMasking.mask(url)
        head.fields = fields.filter { field in Self.kept.contains { field.name.caseInsensitiveEquals($0) } }
        return head
    }
}
