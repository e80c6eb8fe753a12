import FKMiddleware
import Foundation

#if canImport(FoundationNetworking)
    import FoundationNetworking
#endif

/// From an open part file to a request on the wire, and what its answer's head writes into the record.
extension TaskRun {
    /// With no lane at work: asks for the first range that is missing, or goes on to verifying when none is.
    func fetchNext() {
        guard let lane = laneSet.first(entry.record.ranges) else { return finishSoon() }
        ask(with: lane)
    }

    /// Sends the request for the range that a lane fills or claims.
    func ask(with lane: Lane) {
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
            validator: lane.mirror.map { laneSet.mirrors.validator(of: $0) } ?? entry.record.validator,
            maxSize: entry.record.task.options.maxSize,
            isOtherSource: lane.mirror == nil && entry.record.received > 0
                && url != entry.record.source ?? entry.record.task.url,
            isDigestKnown: entry.expectedDigest != nil)
        let ask = lane.nextAsk ?? ResumeRules.ask(for: range, known: known)
        lane.nextAsk = nil
        lane.lastAsk = ask
        lane.known = known
        let request = request(lane.mirror ?? url, ask: ask)
        let chain = entry.middlewares(of: room.chains.request, url: lane.mirror ?? url)
        guard !chain.isEmpty, let context = entry.context else { return send(.init(request: request), with: lane) }
        lane.chain = Task { [inbox = room.inbox, engine = room.engine, id = entry.id, number = lane.number] in
            let result = await MiddlewareCall.inChain(of: engine) { await PreparedRequest.run(chain, request, context) }
            inbox.post(.request(id, lane: number, result))
        }
    }

    private func request(_ url: String, ask: RangeAsk) -> URLRequest {
        // Every URL has been through URLNormalizer, so Foundation can read it.
        var request = URLRequest(url: URL(string: url) ?? URL(fileURLWithPath: "/"))
        for field in entry.record.task.options.headers ?? [] { request.add(field) }
        // Without fields of its own it has none to be removed.
        if ask.usesRange || entry.record.task.hasOptions { ask.apply(to: &request) }
        return request
    }

    func requestChainEnded(_ result: Result<PreparedRequest, DownloadError>, _ lane: Lane) {
        lane.chain = nil
        if isEnding || lane.isUnwanted { return laneEnded(lane) }
        switch result {
        case .success(var prepared):
            // The range is the engine's own: a middleware may see it, not change it.
            lane.lastAsk.apply(to: &prepared.request)
            send(prepared, with: lane)
        case .failure(let error):
            laneFailed(lane, error)
        }
    }

    private func send(_ prepared: PreparedRequest, with lane: Lane) {
        let request = prepared.request
        do throws(DownloadError) { try request.checkFields() } catch {
            return laneFailed(lane, error)
        }
        let options = entry.record.task.options
        let secret = prepared.secretHeaders.union((options.secretHeaders ?? []).map { $0.lowercased() })
        lane.prefersHTTP1 = prefersHTTP1()
        lane.operation = room.transport.start(
            TransportRequest(
                urlRequest: request, secretHeaders: secret,
                options: options.transportOptions(over: configure.transport), prefersHTTP1: lane.prefersHTTP1),
            handler: handler(for: lane, EchoMasking(request: request, secretHeaders: secret)))
    }

    /// Streams of one HTTP/2 connection share what a server gives a connection, and what it spares, the round trips of
    /// many small files, a task that is alone does not have.
    private func prefersHTTP1() -> Bool {
        if lanes.count > 1 { return true }
        let isAlone = schedule.running.count == 1 && schedule.ready.isEmpty && !schedule.hosts.isShared(entry.host)
        // After a failure anything may be the cause: then as everybody else does it.
        if isAlone, previousError == nil { return true }
        // There will be a connection over HTTP/2: the last task of a list does not open one of its own.
        schedule.hosts.noteShared(entry.host)
        return false
    }

    private func handler(for lane: Lane, _ echo: EchoMasking) -> any TransportHandler {
        let (inbox, id, number) = (room.inbox, entry.id, lane.number)
        if let piece = lane.trial {
            return MirrorTrial(start: piece.start, held: piece.held) { inbox.post(.trial(id, lane: number, $0)) }
        }
        // A mirror's body may never take the place of what others fetch.
        let isAlone = lane.claim == nil && lane.mirror == nil
        let receiver = RangeReceiver(
            plan: .init(
                ask: lane.lastAsk, known: lane.known, index: lane.index,
                segments: max(isAlone ? 1 : 2, entry.record.ranges.count), part: part, counters: files.counters,
                limits: limits, digest: entry.record.task.options.checksum?.algorithm,
                inlineLimit: room.inlineLimit(for: entry, in: folder),
                wantsPiece: configure.durability == .process && entry.record.task.options.checksum == nil, clock: clock,
                echo: echo),
            onGate: { inbox.post(.gate(id, $0)) },
            onEnd: { inbox.post(.end(id, $0)) })
        lane.receiver = receiver
        return receiver
    }

    // MARK: The gate

    /// The head of a body that is worth a record has arrived: write it down before a byte is overwritten.
    func openGate(_ lane: Lane, _ receiver: RangeReceiver) {
        do throws(DownloadError) {
            if lane.claim != nil, !settle(lane, receiver) { return unwant(lane) }
            if lane.claim == nil, lane.mirror == nil, let total = receiver.total { try reserveRoom(total) }
            // A body that takes its time has its record updated once a second at most.
            openInfo = nil
            try book.attach(files.counters, of: entry)
            if lane.mirror == nil { try adopt(receiver) }
            try book.save(entry)
        } catch {
            // The transfer ends with this error instead of its own.
            diskError = error
            lane.cancel()
            return
        }
        reporter.account(entry)
        receiver.openGate()
        lane.operation?.resume()
        grow()
    }

    /// Takes over into the record what a response head says about the file.
    func adopt(_ receiver: RangeReceiver) throws(DownloadError) {
        guard let head = receiver.head, let decision = receiver.decision else { return }
        self.head = head
        receiver.isRecorded = true
        switch decision {
        case .append(_, _, let length):
            if entry.record.ranges.isEmpty { entry.rangesChanged = true }
            entry.record.learn(length: length)
        case .startOver(let length) where !receiver.askedEngine:
            // A small body into an empty part: its counter may have moved on already.
            entry.record.startOver(length: length)
            entry.rangesChanged = true
        case .startOver(let length):
            if entry.record.received > 0 {
                let name = receiver.plan.known.isOtherSource ? "the mirror" : "the server"
                appendHistory(
                    by: "resume",
                    "\(name) sends the file from its beginning: \(Plural.count(entry.record.received, "byte")) dropped")
                try part.truncate(to: 0)
            }
            entry.record.startOver(length: length)
            entry.rangesChanged = true
            files.counters.store(0, receiver.position)
            receiver.assign(index: 0)
        default: return
        }
        adoptValidator(of: head)
        entry.record.adopt(head.essentials)
    }

    /// Validators are remembered together with the URL they are of; a digest holds for all of them.
    private func adoptValidator(of head: ResponseHead) {
        let source = url == entry.record.task.url ? nil : url
        let digest = entry.record.validator?.digest
        if entry.record.validator == nil || entry.record.source != source {
            entry.record.adopt(ResumeRules.validator(of: head), of: source)
        }
        // A server may tell it only with a part of the file.
        if let digest = ServerDigest.stronger(digest, ServerDigest.parse(head)) {
            entry.record.adopt(digest)
        }
        noteCoding()
    }

    /// Says once that the file is not in plain bytes, though those were asked for.
    private func noteCoding() {
        guard let coding = entry.record.validator?.coding else { return }
        let what = "the server sends the file with Content-Encoding \(coding): its bytes are kept as sent"
        if !entry.record.history.contains(where: { $0.what == what }) { appendHistory(by: "coding", what) }
    }
}

/// A request as the request chain has left it.
struct PreparedRequest: Sendable {
    var request: URLRequest
    /// Lower-case names of fields that are sent to the first origin only and never shown.
    var secretHeaders: Set<String> = []

    /// Walks the request chain; the first error ends the walk.
    static func run(
        _ chain: [any RequestMiddleware], _ request: URLRequest, _ context: TaskContext
    ) async -> Result<PreparedRequest, DownloadError> {
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
        let secret = Set(chain.flatMap(\.secretHeaders).map { $0.lowercased() })
        return .success(PreparedRequest(request: request, secretHeaders: secret))
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
