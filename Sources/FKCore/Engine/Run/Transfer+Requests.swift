import FKMiddleware
import Foundation

/// The request of a lane: its range, its headers, its request chain.
extension Transfer {
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
            version(for: lane), askedAt: lane.mirror ?? url, maxSize: entry.record.task.optionsBox?.value.maxSize,
            size: entry.record.task.optionsBox?.value.size, policy: mirrorPolicy,
            isOwn: (lane.mirror ?? url) == entry.record.address(0), binding: binding(of: lane.mirror ?? url),
            isRepair: entry.record.isRepair, name: entry.record.task.fileName ?? run.urlName,
            expectedType: entry.record.task.optionsBox?.value.expectedType, entityTag: entityTag(of: lane.mirror ?? url)
        )
        lane.request.reopens = pieces.reopens
        var ask =
            lane.nextAsk
            ?? ResumeRules.ask(for: range, known: known, heldBefore: known.isOtherSource ? held(before: range) : 0)
        // The digest or checksum of the piece decides, and not the bytes before it.
        if lane.repairs != nil || entry.record.isRepair { ask.overlap = 0 }
        lane.nextAsk = nil
        let fetcher = fetcher(of: lane)
        ask = fetcher.cap(ask, total: known.length)
        lane.request.fetcher = fetcher
        if isStream, laneSet.growth.limit > 1, ask.usesRange, let reading, reading.canSeek {
            ask.end = min(ask.end ?? .max, ask.start + reading.portion, entry.record.expected ?? .max)
        }
        lane.request.ask = ask
        lane.request.known = known
        let request = request(lane.mirror ?? url, ask: ask)
        let chain = book.chains.request.scoped(for: entry.context, url: lane.mirror ?? url)
        guard !chain.isEmpty else { return send(.init(form: request), with: lane) }
        let context = entry.context
        let secret = entry.record.task.optionsBox?.value.secretHeaders ?? []
        // Requests for tokens take the same way as the file.
        let connection = TaskOptions(
            connectionOf: entry.record.task.options.transportOptions(over: schedule.configure.transport))
        lane.chain = Task { [inbox, id = entry.id, number = lane.number] in
            let (result, notes) = await MiddlewareCall.inChain(of: inbox.engine, id) {
                await ConnectionOptions.$ofChain.withValue(connection) {
                    await CredentialRenewal.$endsAttempts.withValue(true) {
                        await PreparedRequest.run(chain, request.urlRequest, context, secret: secret)
                    }
                }
            }
            inbox.post(.request(id, lane: number, result, notes))
        }
    }

    /// The entity tag that a list has named for a source; nil without one. Tags of mirrors are their own.
    private func entityTag(of source: String) -> String? {
        entry.record.task.optionsBox?.value.entityTag.flatMap { source == entry.record.task.url ? $0 : nil }
    }

    /// The version of the stored bytes. A mirror beside the others was proven to have the same: its own validators decide
    /// from then on.
    private func version(for lane: Lane) -> FileVersion {
        var version = entry.record.version
        version.isVouched = isVouched
        if let mirror = lane.mirror {
            version.source = mirror
            version.validator = laneSet.mirrors.validator(of: mirror)
        } else if entry.record.received == 0 {
            // There are no bytes to join.
            version.source = url
        }
        return version
    }

    /// The digest that another server announced, and the file of this source must have; nil without one.
    private func binding(of source: String) -> AnnouncedDigest? {
        guard let digest = entry.record.announced, digest.source != source, source != entry.record.address(0) else {
            return nil
        }
        return digest
    }

    /// The stored bytes directly before a range without bytes, which a repair leaves.
    private func held(before range: SavedRange) -> Int64 {
        let before = entry.record.ranges.first { $0.end == range.start && SegmentPlanner.isFinished($0) }
        return range.position == range.start ? before.map { range.start - $0.start } ?? 0 : 0
    }

    private func request(_ url: String, ask: RangeAsk) -> RequestForm {
        // Every URL was normalized, so Foundation can read it.
        let plain = RequestForm.url(url)
        let fields = entry.record.headers(for: url, isOffered: laneSet.mirrors.isOffered(url))
        let tag = entityTag(of: url)
        guard ask.usesRange || !fields.isEmpty || tag != nil else { return plain }
        var request = plain.urlRequest
        for field in fields { request.add(field) }
        if let tag { request.setValue(tag, forHTTPHeaderField: "If-Match") }
        ask.apply(to: &request)
        return .full(request)
    }

    func requestChainEnded(_ result: Result<PreparedRequest, DownloadError>, _ lane: Lane) {
        lane.chain = nil
        if isEnding || lane.isUnwanted { return laneEnded(lane) }
        switch result {
        case .success(var prepared):
            // A middleware may read the range, but not change it.
            lane.request.ask.apply(to: &prepared.request)
            send(prepared, with: lane)
        case .failure(let error):
            laneFailed(lane, error)
        }
    }

    /// Sends a request, or lets it wait for its turn.
    private func send(_ prepared: PreparedRequest, with lane: Lane) {
        let turn = Schedule.HeldRequest(id: entry.id, lane: lane.number, host: host(of: lane), asker: asker)
        if schedule.acquireTurn(turn) { return transmit(prepared, with: lane) }
        lane.held = Lane.HeldRequest(prepared: prepared) { [inbox, schedule] in
            schedule.dropHeld(turn.id, lane: turn.lane)
            // The lane ends as it does after a request chain.
            inbox.post(.request(turn.id, lane: turn.lane, .failure(DownloadError(.cancelled, "Stopped.")), []))
        }
    }

    /// The turn of a lane's request has come, and was counted.
    func turnCame(_ number: Int) {
        guard let lane = laneSet[number], let prepared = lane.held.take()?.prepared else { return }
        transmit(prepared, with: lane)
    }

    /// The command's limits for requests to a host.
    var asker: HostAsker { schedule.groups.asker(entry.group) }

    /// The number of requests to a host that were sent and not answered.
    func unanswered(of host: String) -> Int { lanes.count { $0.request.isUnanswered && self.host(of: $0) == host } }

    private func transmit(_ prepared: PreparedRequest, with lane: Lane) {
        let source = lane.mirror ?? url
        var prepared = prepared
        let task = entry.record.task
        var options =
            task.hasOptions
            ? task.options.transportOptions(over: schedule.configure.transport) : schedule.configure.transport
        let policy = schedule.hosts.rules(for: host(of: lane)).loginHost
        if let login = options.loginHost ?? policy?.value {
            recordLogin(at: login, by: options.loginHost == nil ? policy?.policy : nil)
            options.loginHost = login
            options.sessionPath =
                options.sessionPath ?? WorkPath(schedule.configure.workPath).ofShards.sessionsPath
        }
        if let contact = asker.contact ?? schedule.hosts.rules(for: host(of: lane)).contact {
            prepared.request.add(contact: contact, to: options.userAgent ?? TransportOptions.defaultUserAgent)
        }
        lane.request.prefersHTTP1 = prefersHTTP1()
        var request: TransportRequest
        do throws(DownloadError) {
            request = try TransportRequest(
                prepared, of: task,
                isStranger: entry.record.isStranger(source, isOffered: laneSet.mirrors.isOffered(source)), options,
                at: clock.date, prefersHTTP1: lane.request.prefersHTTP1)
        } catch {
            return laneFailed(lane, error)
        }
        request.task = entry.id
        lane.request.sent = clock.now
        lane.request.isUnanswered = true
        let echo = EchoMasking(request)
        lane.request.echo = echo
        lane.request.operation = (lane.request.fetcher ?? fetcher(of: lane)).start(request, with: lane, of: self, echo)
    }

    /// Names the login host in the history, once.
    private func recordLogin(at host: String, by policy: String?) {
        let what = "redirects may authenticate at \(host)" + (policy.map { ", by the policy of \($0)" } ?? "")
        if !entry.record.history.contains(where: { $0.what == what }) { run.appendHistory(by: "login", what) }
    }

    func limits(of lane: Lane) -> LimiterSet {
        lane.mirror.flatMap { rates.limiter(ofHost: $0.site, for: entry) }
            .map { LimiterSet([$0], and: limits) } ?? limits
    }

    /// A request was answered, or has ended without an answer. The limits that its server announces count from now on.
    func answered(_ lane: Lane, _ head: ResponseHead?) {
        guard lane.request.isUnanswered else { return }
        lane.request.isUnanswered = false
        guard let head else { return }
        let host = host(of: lane)
        guard head.redirects > 0 else { return recordLimits(of: host, head) }
        var redirect = head
        redirect.fields = head.carried
        recordLimits(of: host, redirect)
        let target = head.url.normalizedSite
        schedule.hosts.count(target, for: asker, now: clock.now)
        recordLimits(of: target, head)
    }

    private func recordLimits(of host: String, _ head: ResponseHead) {
        let fields = RateLimitFields(head, now: clock.date)
        schedule.record(fields, of: host, for: entry)
        for fault in fields.faults where !entry.record.history.contains(where: { $0.what == fault }) {
            run.appendHistory(by: "limit", fault)
        }
    }

    /// True if the request should use HTTP/1.1. HTTP/2 saves round trips for many small files. For a single file it has no
    /// advantage, and several lanes over one connection share its throughput.
    private func prefersHTTP1() -> Bool {
        if lanes.count > 1 { return true }
        let isAlone = schedule.running.count == 1 && schedule.ready.isEmpty && !schedule.hosts.isShared(entry.host)
        // The protocol may be the cause of an earlier failure. Then the usual one is used.
        if isAlone, run.attempt.previousError == nil { return true }
        // The host has an HTTP/2 connection from now on, which the last task of a list shares.
        schedule.hosts.recordShared(entry.host)
        return false
    }

    func handler(for lane: Lane, _ limits: LimiterSet, _ echo: EchoMasking) -> any TransportHandler {
        let (inbox, id, number) = (inbox, entry.id, lane.number)
        if let piece = lane.trial {
            return MirrorTrial(start: piece.start, held: piece.held) { inbox.post(.trial(id, lane: number, $0)) }
        }
        // A mirror's body must never replace the bytes of other lanes.
        let isAlone = lane.claim == nil && lane.mirror == nil
        let checksum = entry.record.task.optionsBox?.value.checksum
        let receiver = RangeReceiver(
            plan: .init(
                ask: lane.request.ask, known: lane.request.known, index: lane.index,
                segments: max(isAlone ? 1 : 2, entry.record.ranges.count), part: part.file, counters: part.counters,
                limits: limits, digest: (checksum ?? lane.request.known.binding?.checksum)?.algorithm,
                inlineLimit: destinations.inlineLimit(for: entry, in: folder),
                wantsPiece: checksum == nil && !isStream, clock: clock,
                echo: echo),
            onGate: { inbox.post(.gate(id, $0)) },
            onEnd: { inbox.post(.end(id, $0)) })
        lane.receiver = receiver
        return receiver
    }
}

extension URLRequest {
    /// Appends a contact to the User-Agent.
    ///
    /// - Parameter standard: the User-Agent of a request without one.
    mutating func add(contact: String, to standard: String) {
        let agent = value(forHTTPHeaderField: "User-Agent") ?? standard
        if !agent.contains(contact) { setValue("\(agent) (\(contact))", forHTTPHeaderField: "User-Agent") }
    }
}
