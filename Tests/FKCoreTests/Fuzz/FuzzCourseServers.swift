import TestSupport

/// The servers of a course: each host has one version of the file at a time, and says what it says about it.
final class CourseServers: Sendable {
    /// What a host says about its version.
    enum Validators: CaseIterable {
        case strongTag, weakTag, strongTime, weakTime, none

        var areStrong: Bool { self == .strongTag || self == .strongTime }
    }

    private struct Host {
        var version: Int
        /// The versions since the task was last complete: its part file may have bytes of each.
        var seen: Set<Int>
        var validators: Validators
        var sendsDigest: Bool
        var servesRanges = true
        /// Odd answers have neither lengths nor totals.
        var sendsLengths = true
        /// A mirror that the answers name (RFC 6249).
        var link: String?
    }

    private struct State {
        var random: SeededRandom
        var hosts: [String: Host]
        /// How many answers of four may be odd.
        var oddity: Int
        var gate = TestGate()
        var log: [String] = []
    }

    /// The hosts of the task's file. `reuse` has a file of its own, and no odd answers.
    static let names = ["a.example", "b.example", "c.example"]
    static let reuse = "r.example"

    /// 0 and 1 have every other eighth in common. All others have no bytes in common.
    let versions: [Data]
    let description: String
    private let state: Locked<State>

    private static let patterns = (1...4).map { Data(Bytes.pattern(count: 5 << 20, seed: $0)) }

    init(_ random: inout SeededRandom) {
        let size = random.pick([1_000, 100_000, 200_000, 2_400_000, 2_400_000])
        let other = random.oneIn(2) ? size : size / 2 + random.below(size)
        let patterns = Self.patterns
        var alike = Data()
        for eighth in 0..<8 {
            let place: Range<Int> = eighth * size / 8..<(eighth + 1) * size / 8
            alike += patterns[eighth % 2][place]
        }
        versions = [patterns[0].prefix(size), alike, patterns[2].prefix(size), patterns[3].prefix(other)]
        let link = random.oneIn(3) ? random.pick(["b.example", "c.example"]) : nil
        var hosts: [String: Host] = [:]
        for name in Self.names {
            let version = random.pick([0, 0, 1, 1, 2, 3])
            hosts[name] = Host(
                version: version, seen: [version], validators: random.pick(Validators.allCases),
                sendsDigest: random.oneIn(5), servesRanges: !random.oneIn(8), sendsLengths: !random.oneIn(4),
                link: name == link ? nil : link)
        }
        hosts[Self.reuse] = Host(version: 0, seen: [], validators: .strongTag, sendsDigest: true)
        let oddity = random.pick([0, 2, 3, 4])
        let said = Self.names.map { "\($0): \(hosts[$0].map { "\($0)" } ?? "")" }.joined(separator: "\n")
        description = "\(size) and \(other) bytes, \(oddity) of 4 answers odd\n\(said)"
        state = Locked(State(random: SeededRandom(seed: random.next()), hosts: hosts, oddity: oddity))
    }

    var log: [String] { state.withLock { $0.log } }

    func note(_ text: String) { state.withLock { $0.log.append(text) } }

    /// The host has that version from now on, unless nobody could tell it from the one that the part file has bytes of.
    func change(_ name: String, to version: Int) {
        state.withLock { state in
            guard var host = state.hosts[name] else { return }
            let isAlike = version < 2 && host.seen.contains(1 - version)
            guard host.validators.areStrong || !isAlike else { return }
            host.version = version
            host.seen.insert(version)
            state.hosts[name] = host
        }
    }

    /// The task is complete: it has no part file.
    func isComplete() {
        state.withLock { state in
            state.hosts = state.hosts.mapValues { host in
                var host = host
                host.seen = [host.version]
                return host
            }
        }
    }

    func openGate() {
        state.withLock { state in
            defer { state.gate = TestGate() }
            return state.gate
        }.open()
    }

    /// From now on each request is answered as RFC 9110 has it, with the version that the host has now.
    func settle() {
        state.withLock { $0.oddity = 0 }
        openGate()
    }

    // MARK: Answers

    func answer(_ request: TransportRequest, _ number: Int) -> Bench.Answer {
        state.withLock { state in
            let url = request.urlRequest.url
            let name = url?.host ?? ""
            let (kind, steps) = answer(request, state.hosts[name], isOdd: name != Self.reuse, &state)
            let fields = (request.urlRequest.allHTTPHeaderFields ?? [:]).map { "\($0): \($1)" }.sorted()
            state.log.append("\(number) \(name) \(fields): \(kind) of version \(state.hosts[name]?.version ?? -1)")
            return Bench.Answer(steps)
        }
    }

    private func answer(
        _ request: TransportRequest, _ host: Host?, isOdd: Bool, _ state: inout State
    ) -> (String, [Bench.Answer.Step]) {
        let url = request.urlRequest.url?.absoluteString ?? ""
        func asked(_ name: String) -> String? { request.urlRequest.value(forHTTPHeaderField: name) }
        func head(_ status: Int, _ fields: [HeaderField] = []) -> Bench.Answer.Step {
            .head(ResponseHead(status: status, fields: fields, url: url))
        }
        let isOdd = isOdd && state.random.below(4) < state.oddity
        guard let host, !(isOdd && state.random.oneIn(6)) else {
            let status = state.random.pick([503, 500, 404, 404, 403, 416, 429])
            return ("\(status)", [head(status)])
        }
        let content = versions[host.version]
        var fields = fields(host)
        let validator = fields.first?.value
        if let known = asked("If-None-Match") ?? asked("If-Modified-Since"), known == validator {
            return ("304", [head(304, fields)])
        }
        // A server may ignore If-Range, and one may ignore ranges.
        let ifRange = asked("If-Range")
        let isSame =
            ifRange == nil || ifRange == validator && host.validators.areStrong || isOdd && state.random.oneIn(3)
        let hasLength = !isOdd || host.sendsLengths
        var body = content
        var status = 200
        if let range = asked("Range"), isSame, host.servesRanges, !(isOdd && state.random.oneIn(6)) {
            let wanted = Self.bounds(range, in: content.count)
            guard !wanted.isEmpty else {
                fields.append(.init("Content-Range", "bytes */\(content.count)"))
                return ("416", [head(416, fields)])
            }
            // A server may send less than was asked for, without the total length.
            let isShort = isOdd && state.random.oneIn(2)
            body = content[wanted].prefix(isShort ? 1 + state.random.below(wanted.count) : wanted.count)
            status = 206
            let end = wanted.lowerBound + body.count - 1
            fields.append(
                .init("Content-Range", "bytes \(wanted.lowerBound)-\(end)/\(hasLength ? "\(content.count)" : "*")"))
        }
        if hasLength { fields.append(.init("Content-Length", "\(body.count)")) }
        let kind = "\(status)\(hasLength ? "" : " without a length"), \(body.count) bytes"
        let first = head(status, fields)
        guard isOdd else { return (kind, [first, .bytes([UInt8](body))]) }
        let (end, steps) = Self.course(of: body, state.gate, &state.random)
        return (kind + end, [first] + steps)
    }

    private func fields(_ host: Host) -> [HeaderField] {
        let version = host.version
        let time = HeaderField("Last-Modified", "Mon, 0\(version + 1) Jan 2024 00:00:00 GMT")
        var fields: [HeaderField] =
            switch host.validators {
            case .strongTag: [.init("ETag", "\"v\(version)\"")]
            case .weakTag: [.init("ETag", "W/\"v\(version)\"")]
            case .strongTime: [time, .init("Date", "Wed, 01 Jan 2025 00:00:00 GMT")]
            case .weakTime: [time]
            case .none: []
            }
        if let link = host.link { fields.append(.init("Link", "<http://\(link)/file>; rel=duplicate")) }
        if host.sendsDigest { fields.append(.init("Repr-Digest", "sha-256=:\(digest(of: version)):")) }
        return fields
    }

    /// A body that comes in pieces, waits at the gate, or is cut.
    private static func course(
        of body: Data, _ gate: TestGate, _ random: inout SeededRandom
    ) -> (String, [Bench.Answer.Step]) {
        let isCut = random.oneIn(2)
        var rest = isCut ? body.prefix(random.below(body.count + 1)) : body
        let kind = isCut ? ", cut after \(rest.count)" : ""
        var steps: [Bench.Answer.Step] = []
        while !rest.isEmpty {
            if random.oneIn(3) { steps.append(.wait(gate)) }
            let piece = random.oneIn(3) ? rest.prefix(1 + random.below(rest.count)) : rest
            steps.append(.bytes([UInt8](piece)))
            rest = rest.dropFirst(piece.count)
        }
        if isCut { steps.append(.fail(DownloadError(.connectionLost, "cut", isRetryable: true))) }
        return (kind, steps)
    }

    private func digest(of version: Int) -> String {
        Bytes.base64(.sha256, [UInt8](versions[version]))
    }

    func sha256(of version: Int) -> String { Bytes.sha256([UInt8](versions[version])) }

    private static func bounds(_ range: String, in count: Int) -> Range<Int> {
        let parts = range.dropFirst("bytes=".count).split(separator: "-", omittingEmptySubsequences: false)
        let start = min(Int(parts[0]) ?? 0, count)
        let end = parts.count > 1 ? Int(parts[1]).map { min(count, $0 + 1) } : nil
        return start..<max(start, end ?? count)
    }
}
