import FKMiddleware
import Foundation

#if canImport(FoundationNetworking)
    import FoundationNetworking
#endif

/// From an open part file to a request on the wire, and what its answer's head writes into the record.
extension Engine {
    /// With no lane at work: asks for the first range that is missing, or goes on to verifying when none is.
    func fetchNext(_ entry: TaskEntry, _ attempt: Attempt) {
        let ranges = entry.record.ranges
        guard let index = ranges.isEmpty ? 0 : SegmentPlanner.nextRange(in: ranges) else {
            return verify(entry, attempt)
        }
        let lane = attempt.addLane()
        lane.index = index
        ask(with: lane, entry, attempt)
    }

    /// Sends the request for the range that a lane fills or claims.
    func ask(with lane: Lane, _ entry: TaskEntry, _ attempt: Attempt) {
        let range: SavedRange
        if let claim = lane.claim {
            let end = entry.record.ranges.first { $0.start < claim && claim < $0.end ?? .max }?.end
            range = SavedRange(start: claim, end: end ?? entry.record.expected)
        } else if let index = lane.index, entry.record.ranges.indices.contains(index) {
            range = entry.record.ranges[index]
        } else {
            range = SavedRange(start: 0, end: nil)
        }
        let known = ResumeRules.Known(
            length: entry.record.expected,
            validator: lane.mirror.map { attempt.mirrors.validator(of: $0) } ?? entry.record.validator,
            maxSize: entry.record.task.options.maxSize,
            isOtherSource: lane.mirror == nil && entry.record.received > 0
                && attempt.url != entry.record.source ?? entry.record.task.url,
            isDigestKnown: expectedDigest(of: entry) != nil)
        let ask = lane.nextAsk ?? ResumeRules.ask(for: range, known: known)
        lane.nextAsk = nil
        lane.lastAsk = ask
        let request = request(for: entry, lane.mirror ?? attempt.url, ask: ask)
        let chain = chains.request.ordered
        guard !chain.isEmpty, let context = entry.context else {
            return send(request, secret: [], known: known, lane, entry, attempt)
        }
        lane.chain = Task { [weak self, engine = ObjectIdentifier(self), id = entry.id, number = lane.number] in
            let result = await MiddlewareCall.inChain(of: engine) { await Self.run(chain, request, context) }
            await self?.requestChainEnded(result, chain, known: known, number, id)
        }
    }

    private func request(for entry: TaskEntry, _ url: String, ask: RangeAsk) -> URLRequest {
        // Every URL has been through URLNormalizer, so Foundation can read it.
        var request = URLRequest(url: URL(string: url) ?? URL(fileURLWithPath: "/"))
        for field in entry.record.task.options.headers ?? [] { request.add(field) }
        // Without fields of its own it has none to be removed.
        if ask.usesRange || entry.record.task.hasOptions { ask.apply(to: &request) }
        return request
    }

    private static func run(
        _ chain: [any RequestMiddleware], _ request: URLRequest, _ context: TaskContext
    ) async -> Result<URLRequest, DownloadError> {
        var request = request.keepingFields
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
        _ result: Result<URLRequest, DownloadError>, _ chain: [any RequestMiddleware], known: ResumeRules.Known,
        _ number: Int, _ id: TaskID
    ) {
        guard let entry = tasks[id], let attempt = entry.attempt, let lane = attempt.lane(number: number) else {
            return
        }
        lane.chain = nil
        if attempt.isEnding || lane.isUnwanted { return laneEnded(lane, entry, attempt) }
        switch result {
        case .success(var request):
            // The range is the engine's own: a middleware may see it, not change it.
            lane.lastAsk.apply(to: &request)
            let secret = Set(chain.flatMap(\.secretHeaders).map { $0.lowercased() })
            send(request, secret: secret, known: known, lane, entry, attempt)
        case .failure(let error):
            laneFailed(lane, error, entry, attempt)
        }
    }

    private func send(
        _ request: URLRequest, secret: Set<String>, known: ResumeRules.Known, _ lane: Lane, _ entry: TaskEntry,
        _ attempt: Attempt
    ) {
        do throws(DownloadError) { try request.checkFields() } catch {
            return laneFailed(lane, error, entry, attempt)
        }
        let options = entry.record.task.options
        let secret = secret.union((options.secretHeaders ?? []).map { $0.lowercased() })
        lane.prefersHTTP1 = prefersHTTP1(entry, attempt)
        lane.operation = transport.start(
            TransportRequest(
                urlRequest: request, secretHeaders: secret,
                options: options.transportOptions(over: configure.transport), prefersHTTP1: lane.prefersHTTP1),
            handler: handler(for: lane, known, EchoMasking(request: request, secretHeaders: secret), entry, attempt))
    }

    /// Streams of one HTTP/2 connection share what a server gives a connection, and what it spares, the round trips of
    /// many small files, a task that is alone does not have.
    private func prefersHTTP1(_ entry: TaskEntry, _ attempt: Attempt) -> Bool {
        if attempt.lanes.count > 1 { return true }
        let isAlone = running.count == 1 && ready.isEmpty && !hosts.isShared(entry.host)
        // After a failure anything may be the cause: then as everybody else does it.
        if isAlone, entry.work.previousError == nil { return true }
        // There will be a connection over HTTP/2: the last task of a list does not open one of its own.
        hosts.noteShared(entry.host)
        return false
    }

    private func handler(
        for lane: Lane, _ known: ResumeRules.Known, _ echo: EchoMasking, _ entry: TaskEntry, _ attempt: Attempt
    ) -> any TransportHandler {
        if let piece = lane.trial {
            return MirrorTrial(start: piece.start, held: piece.held) { [inbox, id = entry.id, number = lane.number] in
                inbox.post(.trial(id, lane: number, $0))
            }
        }
        // A mirror's body may never take the place of what others fetch.
        let isAlone = lane.claim == nil && lane.mirror == nil
        let receiver = RangeReceiver(
            plan: .init(
                ask: lane.lastAsk, known: known, index: lane.index,
                segments: max(isAlone ? 1 : 2, entry.record.ranges.count), part: attempt.part,
                counters: attempt.counters, limits: attempt.limits,
                digest: entry.record.task.options.checksum?.algorithm,
                inlineLimit: inlineLimit(for: entry, attempt),
                wantsPiece: configure.durability == .process && entry.record.task.options.checksum == nil, clock: clock,
                echo: echo),
            onGate: { [inbox, id = entry.id] in inbox.post(.gate(id, $0)) },
            onEnd: { [inbox, id = entry.id] in inbox.post(.end(id, $0)) })
        lane.receiver = receiver
        return receiver
    }

    // MARK: The gate

    /// The head of a body that is worth a record has arrived: write it down before a byte is overwritten.
    func openGate(_ lane: Lane, _ receiver: RangeReceiver, _ entry: TaskEntry, _ attempt: Attempt) {
        do throws(DownloadError) {
            if lane.claim != nil, !settle(lane, receiver, entry, attempt) {
                lane.isUnwanted = true
                lane.cancel()
                return
            }
            if lane.claim == nil, lane.mirror == nil, let total = receiver.total {
                try reserveRoom(total, for: entry, attempt)
            }
            // The counters first: until the record follows, they count for nothing it says.
            entry.hasCleanCounters = false
            // A body that takes its time has its record updated once a second at most.
            entry.workIfAny?.openInfo = nil
            try attach(attempt.counters, entry)
            if lane.mirror == nil { try adopt(receiver, entry, attempt) }
            try save(entry)
        } catch {
            // The transfer ends with this error instead of its own.
            attempt.diskError = error
            lane.cancel()
            return
        }
        account(entry)
        receiver.openGate()
        lane.operation?.resume()
        grow(entry, attempt)
    }

    /// Takes over into the record what a response head says about the file.
    func adopt(_ receiver: RangeReceiver, _ entry: TaskEntry, _ attempt: Attempt) throws(DownloadError) {
        guard let head = receiver.head, let decision = receiver.decision else { return }
        attempt.head = head
        receiver.isRecorded = true
        let total: Int64?
        switch decision {
        case .append(_, _, let length):
            total = length
            if entry.record.ranges.isEmpty {
                entry.record.ranges = [SavedRange(start: 0, end: length)]
                entry.rangesChanged = true
            }
        case .startOver(let length) where !receiver.askedEngine:
            // A small body into an empty part: its counter may have moved on already.
            total = length
            entry.record.ranges = [SavedRange(start: 0, end: length)]
            entry.record.pieces = nil
            entry.rangesChanged = true
            entry.record.validator = nil
        case .startOver(let length):
            total = length
            if entry.record.received > 0 {
                let name = receiver.plan.known.isOtherSource ? "the mirror" : "the server"
                remember(
                    entry, by: "resume",
                    "\(name) sends the file from its beginning: \(Plural.count(entry.record.received, "byte")) dropped")
                try attempt.part.truncate(to: 0)
            }
            entry.record.ranges = [SavedRange(start: 0, end: length)]
            entry.record.pieces = nil
            entry.rangesChanged = true
            attempt.counters.store(0, receiver.position)
            receiver.assign(index: 0)
            entry.record.validator = nil
        default: return
        }
        if case .startOver = decision { entry.record.expected = nil }
        entry.record.expected = total ?? entry.record.expected
        if entry.record.ranges.count == 1, entry.record.ranges[0].end == nil { entry.record.ranges[0].end = total }
        adoptValidator(of: head, entry, attempt)
        entry.record.response = head.essentials
    }

    /// Validators are remembered together with the URL they are of; a digest holds for all of them.
    private func adoptValidator(of head: ResponseHead, _ entry: TaskEntry, _ attempt: Attempt) {
        let source = attempt.url == entry.record.task.url ? nil : attempt.url
        let digest = entry.record.validator?.digest
        if entry.record.validator == nil || entry.record.source != source {
            entry.record.validator = ResumeRules.validator(of: head)
            entry.record.source = source
        }
        // A server may tell it only with a part of the file.
        if let digest = ServerDigest.stronger(digest, ServerDigest.parse(head)) {
            entry.record.validator?.digest = digest
        }
        noteCoding(entry)
    }

    /// Says once that the file is not in plain bytes, though those were asked for.
    private func noteCoding(_ entry: TaskEntry) {
        guard let coding = entry.record.validator?.coding else { return }
        let what = "the server sends the file with Content-Encoding \(coding): its bytes are kept as sent"
        if !entry.record.history.contains(where: { $0.what == what }) { remember(entry, by: "coding", what) }
    }

    /// The digest the finished file must have: the one the task was given, else the one a server told.
    func expectedDigest(of entry: TaskEntry) -> Checksum? {
        entry.record.task.options.checksum ?? entry.record.validator?.digest
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
    /// By the lengths of the names: most fields are passed over without comparing a letter.
    private static let kept = Dictionary(
        grouping: [
            "content-type", "content-length", "content-range", "content-disposition", "etag", "last-modified", "date",
            "accept-ranges", "content-encoding",
        ], by: \.utf8.count)

    /// The head as it is kept in an info file: only fields that say something about the file, and of the URL nothing that
    /// a request middleware may have signed it with.
    var essentials: ResponseHead {
        var head = self
        head.url = URLMasking.mask(url)
        head.fields = []
        head.fields.reserveCapacity(8)
        for field in fields
        where Self.kept[field.name.utf8.count]?.contains(where: field.name.caseInsensitiveEquals) ?? false {
            head.fields.append(field)
        }
        return head
    }
}
