import FKMiddleware
import Foundation

#if canImport(FoundationNetworking)
    import FoundationNetworking
#endif

/// From an open part file to a sent request, and from the head of its response to the record.
extension TaskRun {
    /// Requests the first missing range, or finishes the file if no byte is missing. No lane is in use.
    func fetchNext() {
        guard let lane = laneSet.first(entry.record.ranges) else { return finishSoon() }
        aim(lane)
        ask(with: lane)
    }

    /// Sends the request for the range of a lane.
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
            version(for: lane), askedAt: lane.mirror ?? url, maxSize: entry.record.task.option { $0.maxSize },
            size: entry.record.task.option { $0.size }, policy: mirrorPolicy,
            isRepair: entry.record.isRepair, name: entry.record.task.fileName ?? urlName)
        lane.reopens = reopens
        var ask =
            lane.nextAsk
            ?? ResumeRules.ask(for: range, known: known, heldBefore: known.isOtherSource ? held(before: range) : 0)
        // The digest or checksum of the piece decides, and not the bytes before it.
        if lane.repairs != nil || entry.record.isRepair { ask.overlap = 0 }
        lane.nextAsk = nil
        lane.lastAsk = ask
        lane.known = known
        let request = request(lane.mirror ?? url, ask: ask)
        let chain = entry.middlewares(of: room.chains.request, url: lane.mirror ?? url)
        guard !chain.isEmpty, let context = entry.context else { return send(.init(request: request), with: lane) }
        let secret = entry.record.task.option { $0.secretHeaders } ?? []
        lane.chain = Task { [inbox = room.inbox, engine = room.engine, id = entry.id, number = lane.number] in
            let (result, notes) = await MiddlewareCall.inChain(of: engine, id) {
                await PreparedRequest.run(chain, request, context, secret: secret)
            }
            inbox.post(.request(id, lane: number, result, notes))
        }
    }

    /// The version of the stored bytes. A mirror beside the others was proven to have the same: its own validators decide
    /// from then on.
    private func version(for lane: Lane) -> FileVersion {
        var version = entry.record.version
        if let mirror = lane.mirror {
            version.source = mirror
            version.validator = laneSet.mirrors.validator(of: mirror)
        } else if entry.record.received == 0 {
            // There are no bytes to join.
            version.source = url
        }
        return version
    }

    /// The stored bytes directly before a range without bytes, which a repair leaves.
    private func held(before range: SavedRange) -> Int64 {
        let before = entry.record.ranges.first { $0.end == range.start && SegmentPlanner.isFinished($0) }
        return range.position == range.start ? before.map { range.start - $0.start } ?? 0 : 0
    }

    private func request(_ url: String, ask: RangeAsk) -> URLRequest {
        // Every URL was normalized by `URLNormalizer`, so Foundation can read it.
        var request = URLRequest(url: URL(string: url) ?? URL(fileURLWithPath: "/"))
        if entry.record.task.hasOptions {
            for field in entry.record.headers(for: url, isOffered: laneSet.mirrors.isOffered(url)) {
                request.add(field)
            }
        }
        // A request without fields has none to remove.
        if ask.usesRange || entry.record.task.hasOptions { ask.apply(to: &request) }
        return request
    }

    func requestChainEnded(_ result: Result<PreparedRequest, DownloadError>, _ lane: Lane) {
        lane.chain = nil
        if isEnding || lane.isUnwanted { return laneEnded(lane) }
        switch result {
        case .success(var prepared):
            // A middleware may read the range, but not change it.
            lane.lastAsk.apply(to: &prepared.request)
            send(prepared, with: lane)
        case .failure(let error):
            laneFailed(lane, error)
        }
    }

    private func send(_ prepared: PreparedRequest, with lane: Lane) {
        let source = lane.mirror ?? url
        let isStranger = entry.record.isStranger(source, isOffered: laneSet.mirrors.isOffered(source))
        let prepared = isStranger ? prepared.withoutSecrets : prepared
        let request = prepared.request
        do throws(DownloadError) { try request.checkFields() } catch {
            return laneFailed(lane, error)
        }
        let task = entry.record.task
        var secret = prepared.secretHeaders
        if let own = task.option({ $0.secretHeaders }) { secret.formUnion(own.map { $0.lowercased() }) }
        lane.prefersHTTP1 = prefersHTTP1()
        lane.asked = clock.now
        lane.operation = room.transport.start(
            TransportRequest(
                urlRequest: request, secretHeaders: secret,
                options: task.hasOptions
                    ? task.options.transportOptions(over: configure.transport) : configure.transport,
                prefersHTTP1: lane.prefersHTTP1),
            handler: handler(for: lane, EchoMasking(request: request, secretHeaders: secret)))
    }

    /// True if the request should use HTTP/1.1. HTTP/2 saves round trips for many small files. For a single file it has no
    /// advantage, and several lanes over one connection share its throughput.
    private func prefersHTTP1() -> Bool {
        if lanes.count > 1 { return true }
        let isAlone = schedule.running.count == 1 && schedule.ready.isEmpty && !schedule.hosts.isShared(entry.host)
        // The protocol may be the cause of an earlier failure. Then the usual one is used.
        if isAlone, attempt.previousError == nil { return true }
        // The host has an HTTP/2 connection from now on, which the last task of a list shares.
        schedule.hosts.noteShared(entry.host)
        return false
    }

    private func handler(for lane: Lane, _ echo: EchoMasking) -> any TransportHandler {
        let (inbox, id, number) = (room.inbox, entry.id, lane.number)
        if let piece = lane.trial {
            return MirrorTrial(start: piece.start, held: piece.held) { inbox.post(.trial(id, lane: number, $0)) }
        }
        // A mirror's body must never replace the bytes of other lanes.
        let isAlone = lane.claim == nil && lane.mirror == nil
        let checksum = entry.record.task.option { $0.checksum }
        let receiver = RangeReceiver(
            plan: .init(
                ask: lane.lastAsk, known: lane.known, index: lane.index,
                segments: max(isAlone ? 1 : 2, entry.record.ranges.count), part: part, counters: files.counters,
                limits: limits, digest: checksum?.algorithm,
                inlineLimit: room.inlineLimit(for: entry, in: folder),
                wantsPiece: checksum == nil, clock: clock,
                echo: echo),
            onGate: { inbox.post(.gate(id, $0)) },
            onEnd: { inbox.post(.end(id, $0)) })
        lane.receiver = receiver
        return receiver
    }

    // MARK: The gate

    /// Asks response middlewares about the head, and then opens the gate.
    func headArrived(_ lane: Lane, _ receiver: RangeReceiver) {
        let chain = lane.claim == nil && lane.mirror == nil ? entry.middlewares(of: room.chains.response) : []
        guard !chain.isEmpty, let context = entry.context, let response = receiver.head?.httpURLResponse else {
            return openGate(lane, receiver)
        }
        lane.isAccepting = true
        lane.chain = Task { [inbox = room.inbox, engine = room.engine, id = entry.id] in
            let (refusal, notes) = await MiddlewareCall.inChain(of: engine, id) {
                await FailureStage.accept(chain, response, context)
            }
            inbox.post(.judged(id, receiver, refusal, notes))
        }
    }

    /// The head stage has ended.
    func headJudged(_ lane: Lane, _ receiver: RangeReceiver, _ refusal: DownloadError?) {
        lane.chain = nil
        lane.isAccepting = false
        if !isEnding, !lane.isUnwanted {
            if let refusal {
                localError = refusal
                refusedHead = receiver.head
                lane.cancel()
            } else {
                openGate(lane, receiver)
            }
        }
        guard lane.hasEnded else { return }
        lane.hasEnded = false
        responseEnded(lane, receiver)
    }

    /// Writes the record for a head that has arrived, before a byte of the part is overwritten.
    func openGate(_ lane: Lane, _ receiver: RangeReceiver) {
        do throws(DownloadError) {
            useMirrors()
            if lane.claim != nil, !settle(lane, receiver) { return unwant(lane) }
            if lane.claim == nil, lane.mirror == nil, let total = receiver.total { try reserveRoom(total) }
            // A body that passes the gate has its record updated at most once a second.
            openInfo = nil
            try book.attach(files.counters, of: entry)
            if lane.mirror == nil { try adopt(receiver) }
            let plan = receiver.plan
            if let head = receiver.head,
                ResumeRules.needsDigest(head: head, ask: plan.ask, known: plan.known, segments: plan.segments)
            {
                entry.record.noteNeedsDigest()
            }
            // The digest may have been taken away since the request was sent.
            if entry.record.version.isUnproven { return restart() }
            try book.save(entry)
        } catch {
            // This error replaces the result of the transfer.
            localError = error
            lane.cancel()
            return
        }
        reporter.account(entry)
        receiver.openGate()
        laneSet.answered(lane, received: entry.received, now: clock.now)
        lane.operation?.resume()
        grow()
    }

    /// Stores in the record what a response head says about the file.
    func adopt(_ receiver: RangeReceiver) throws(DownloadError) {
        guard let head = receiver.head, let decision = receiver.decision else { return }
        self.head = head
        receiver.isRecorded = true
        if case .startOver = decision, entry.record.isRepair, case .refuted = receiver.plan.known.joins(head) {
            throw refuseRepair()
        }
        switch decision {
        case .append(_, _, let length):
            if entry.record.ranges.isEmpty {
                entry.remakeRanges { $0.learn(length: length) }
            } else {
                entry.record.learn(length: length)
            }
        case .startOver(let length) where !receiver.askedEngine:
            // A small body is written to an empty part without a gate. Its counter may have advanced already.
            entry.remakeRanges { $0.startOver(length: length) }
        case .startOver(let length):
            if entry.record.received > 0 {
                let name = receiver.plan.known.isOtherSource ? "the mirror" : "the server"
                appendHistory(
                    by: "resume",
                    "\(name) sends the file from its beginning: \(Plural.count(entry.record.received, "byte")) dropped")
                try part.truncate(to: 0)
            }
            entry.remakeRanges { $0.startOver(length: length) }
            sums = PieceSums()
            laneSet.holes = []
            ledger?.restart()
            files.counters.store(0, receiver.position)
            receiver.assign(index: 0)
            laneSet.lane(of: receiver)?.index = 0
        default: return
        }
        adoptValidator(of: head)
        takeOfferedMirrors(head)
        entry.record.adopt(head.essentials)
    }

    /// Stores the validator with its URL. A digest is valid for all URLs.
    private func adoptValidator(of head: ResponseHead) {
        let source = url == entry.record.task.url ? nil : url
        let digest = entry.record.validator?.digest
        if entry.record.validator == nil || entry.record.source != source {
            entry.record.adopt(Validator(head), of: source)
        }
        // A server may send it only with a part of the file.
        if let digest = ServerDigest.stronger(digest, ServerDigest.parse(head)) {
            entry.record.adopt(digest)
        }
        noteCoding()
    }

    /// Adds a line to the history if the server sends the file with a content coding, once.
    private func noteCoding() {
        guard let coding = entry.record.validator?.coding else { return }
        let what = "the server sends the file with Content-Encoding \(coding): its bytes are kept as sent"
        if !entry.record.history.contains(where: { $0.what == what }) { appendHistory(by: "coding", what) }
    }
}

/// A request after the request chain.
struct PreparedRequest: Sendable {
    var request: URLRequest
    /// The lower-case names of fields that are only sent to the first origin and never displayed.
    var secretHeaders: Set<String> = []

    /// The request without everything that only the task's own servers may see.
    var withoutSecrets: PreparedRequest {
        var prepared = self
        let secret = secretHeaders.union(HeaderField.alwaysSecret)
        for name in request.allHTTPHeaderFields?.keys.map(\.self) ?? [] where secret.contains(name.lowercased()) {
            prepared.request.setValue(nil, forHTTPHeaderField: name)
        }
        return prepared
    }

    /// Runs the request chain. The first error ends it.
    ///
    /// The fields that a program sets count as secret. If it changes the origin of the URL, it has no say in which secrets
    /// of the task go there, so none do.
    ///
    /// - Parameter secret: the names of the task's own secret fields.
    static func run(
        _ chain: [any RequestMiddleware], _ request: URLRequest, _ context: TaskContext, secret taskSecret: [String]
    ) async -> Result<PreparedRequest, DownloadError> {
        var request = request.keepingFields
        var secret = Set(chain.flatMap(\.secretHeaders).map { $0.lowercased() })
        for middleware in chain {
            do {
                guard let program = middleware as? ProgramMiddleware else {
                    request = try await middleware.process(request, for: context)
                    continue
                }
                let origin = request.url.flatMap { URLOrigin($0.absoluteString) }
                let (changed, fields) = try await program.change(request, for: context)
                request = changed
                if changed.url.flatMap({ URLOrigin($0.absoluteString) }) != origin {
                    let own = Set(fields.map { $0.lowercased() })
                    let others = secret.union(taskSecret.map { $0.lowercased() }).union(HeaderField.alwaysSecret)
                    for name in others.subtracting(own) { request.setValue(nil, forHTTPHeaderField: name) }
                }
                secret.formUnion(fields.map { $0.lowercased() })
            } catch {
                return .failure(
                    DownloadError(
                        wrapping: error, code: .middleware, message: "The request middleware \(middleware.name) failed."
                    ))
            }
        }
        return .success(PreparedRequest(request: request, secretHeaders: secret))
    }
}

extension RangeAsk {
    /// Sets or removes `Range` and `If-Range` (RFC 9110 sections 14.2 and 13.1.5).
    package func apply(to request: inout URLRequest) {
        request.setValue(rangeHeader, forHTTPHeaderField: "Range")
        request.setValue(rangeHeader == nil ? nil : ifRange, forHTTPHeaderField: "If-Range")
    }
}

extension ResponseHead {
    /// True for the kept fields. By their lengths, so that most fields need no comparison.
    private static func isKept(_ name: String) -> Bool {
        switch name.utf8.count {
        case 4: name.caseInsensitiveEquals("etag") || name.caseInsensitiveEquals("date")
        case 12: name.caseInsensitiveEquals("content-type")
        case 13:
            name.caseInsensitiveEquals("last-modified") || name.caseInsensitiveEquals("accept-ranges")
                || name.caseInsensitiveEquals("content-range")
        case 14: name.caseInsensitiveEquals("content-length")
        case 16: name.caseInsensitiveEquals("content-encoding")
        case 19: name.caseInsensitiveEquals("content-disposition")
        default: false
        }
    }

    /// The head for an info file: only fields that describe the file, and the URL without signatures of request middlewares.
    var essentials: ResponseHead {
        var head = self
        head.url = URLMasking.mask(url)
        head.fields = []
        head.fields.reserveCapacity(8)
        for field in fields where Self.isKept(field.name) { head.fields.append(field) }
        return head
    }
}
