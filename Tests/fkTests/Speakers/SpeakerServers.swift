import TestSupport

@testable import FKTransport

/// The servers of a course. They note which secrets and orders each request has.
final class SpeakerServers: Sendable {
    /// The hosts, by their part in the play.
    enum Host {
        /// That of the owner's URL.
        static let own = "a.example"
        /// Another port of that host: another origin.
        static let port = "a.example:81"
        /// A mirror that the owner names.
        static let mirror = "m.example"
        /// A mirror that the own server offers.
        static let link = "l.example"
        /// Sends lists and Metalinks.
        static let lists = "s.example"
        /// Named by lists alone.
        static let stranger = "e.example"
        /// To which the own server redirects.
        static let target = "r.example"
        /// To which a middleware moves requests.
        static let moved = "w.example"
    }

    private struct State {
        var random: SeededRandom
        /// How many answers of four are cut, held or refused.
        var oddity = 0
        var isDown = false
        var redirects = false
        var offersLink = false
        var sendsDigest: Bool
        var gate = TestGate()
        var documents: [String: (type: String, bytes: [UInt8])] = [:]
        /// The secrets, and the hosts that may see each.
        var secrets: [String: Set<String>] = [:]
        /// The hosts to which a command has sent the login of `~/.netrc`.
        var netrcHosts: Set<String> = []
        /// The task of the file.
        var task: TaskID?
        /// What the last request of the task to the own server had of each work path, since the last word.
        var last: [Int: Sent] = [:]
        /// The work paths that the own server has sent a digest.
        var bound: Set<Int> = []
        var log: [String] = []
        var complaints: [SpeakerComplaint] = []
    }

    /// What a request had, by the names of orders.
    typealias Sent = [String: String]

    /// The file, and another one of its length.
    let right: [UInt8]
    let other: [UInt8]
    /// What strangers serve.
    static let strange = [UInt8](repeating: 0x45, count: 2_000)
    private let mirrorIsOther: Bool
    private let linkIsOther: Bool
    /// True if mirrors send the digests of their own files.
    private let mirrorsSendDigest: Bool
    private let state: Locked<State>

    private static let patterns = (1...2).map { Bytes.pattern(count: 100_000, seed: $0) }

    init(_ random: inout SeededRandom) {
        let size = random.pick([5_000, 80_000, 100_000])
        right = Array(Self.patterns[0].prefix(size))
        other = Array(Self.patterns[1].prefix(size))
        mirrorIsOther = random.oneIn(2)
        linkIsOther = random.oneIn(2)
        mirrorsSendDigest = random.oneIn(3)
        state = Locked(
            State(
                random: SeededRandom(seed: random.next()), oddity: random.pick([0, 2, 3, 4]),
                offersLink: random.oneIn(2), sendsDigest: random.oneIn(2)))
        note(
            "\(size) bytes, mirror \(mirrorIsOther ? "other" : "right"), link \(linkIsOther ? "other" : "right"), "
                + "their digests \(mirrorsSendDigest), "
                + state.withLock { "digest \($0.sendsDigest), link \($0.offersLink), \($0.oddity) of 4 odd" })
    }

    var log: [String] { state.withLock { $0.log } }

    func note(_ text: String) { state.withLock { $0.log.append(text) } }

    /// What was wrong with requests since the last call.
    func takeComplaints() -> [SpeakerComplaint] {
        state.withLock { state in
            defer { state.complaints = [] }
            return state.complaints
        }
    }

    /// A new secret for these hosts.
    func secret(for hosts: Set<String>) -> String {
        state.withLock { state in
            let value = "SECRET\(state.secrets.count)X"
            state.secrets[value] = hosts
            return value
        }
    }

    /// The same secret in another spelling.
    func note(secret value: String, for hosts: Set<String>) {
        state.withLock { $0.secrets[value, default: []].formUnion(hosts) }
    }

    /// These hosts may see the login of `~/.netrc`.
    func allowNetrc(at hosts: Set<String>) { state.withLock { $0.netrcHosts.formUnion(hosts) } }

    /// The requests of this task are looked at.
    func watch(_ task: TaskID) { state.withLock { $0.task = task } }

    /// A word is said at that work path: what its requests had before counts no more.
    func forgetRequests(of side: Int) { state.withLock { $0.last[side] = nil } }

    /// What the last request to the own server had since then; nil without one.
    func lastRequest(of side: Int) -> Sent? { state.withLock { $0.last[side] } }

    func serve(_ text: String, as type: String, at path: String) {
        state.withLock { $0.documents[path] = (type, Array(text.utf8)) }
    }

    func openGate() {
        state.withLock { state in
            defer { state.gate = TestGate() }
            return state.gate
        }.open()
    }

    /// Something changes at the own server.
    func change() {
        state.withLock { state in
            switch state.random.below(5) {
            case 0, 1: state.isDown.toggle()
            case 2: state.redirects.toggle()
            case 3: state.offersLink.toggle()
            default: state.oddity = state.random.below(5)
            }
            state.log.append(
                "   down \(state.isDown), redirects \(state.redirects), link \(state.offersLink), \(state.oddity) of 4 odd"
            )
        }
    }

    /// From now on everything is served.
    func settle() {
        state.withLock { state in
            (state.oddity, state.isDown, state.redirects, state.offersLink) = (0, false, false, false)
        }
        openGate()
    }

    /// The bytes of that work path's task are dropped, and with them what bound them.
    func drop(_ side: Int) { state.withLock { _ = $0.bound.remove(side) } }

    /// True if the own server has sent that work path the digest of its file.
    func isBound(_ side: Int) -> Bool { state.withLock { $0.bound.contains(side) } }

    // MARK: Answers

    func answer(_ request: TransportRequest, _ side: Int) -> ScriptedTransport.Answer {
        state.withLock { state in
            let url = request.urlRequest.url
            let host = (url?.host ?? "") + (url?.port.map { ":\($0)" } ?? "")
            let fields = request.urlRequest.allHTTPHeaderFields ?? [:]
            Self.inspect(fields, url, request.options, at: host, &state)
            if host == Host.own, request.task == state.task { state.last[side] = Self.sent(fields, request.options) }
            let (kind, answer) = answer(request, host, url?.path ?? "", side, &state)
            let shown = fields.filter { $0.key != "User-Agent" }.map { "\($0): \($1)" }.sorted()
            state.log.append("   \(side) \(host)\(url?.path ?? "") \(shown): \(kind)")
            return answer
        }
    }

    private static func sent(_ fields: [String: String], _ options: TransportOptions) -> Sent {
        var sent: Sent = [:]
        for (name, value) in fields { sent[name.lowercased()] = value }
        sent["cookies"] = options.cookiePath
        sent["netrc"] = options.netrc ? "true" : nil
        return sent
    }

    private static func inspect(
        _ fields: [String: String], _ url: URL?, _ options: TransportOptions, at host: String, _ state: inout State
    ) {
        let text =
            fields.values.joined(separator: "\n") + "\n" + (url?.absoluteString ?? "") + "\n"
            + (options.cookiePath ?? "")
        for (secret, hosts) in state.secrets where !hosts.contains(host) && text.contains(secret) {
            state.complaints.append(
                .init(finding: .foreignSecret, text: "\(secret) of \(hosts.sorted()) goes to \(host)"))
        }
        if options.netrc, !state.netrcHosts.contains(host) {
            state.complaints.append(.init(finding: .foreignSecret, text: "the login of .netrc goes to \(host)"))
        }
        if fields["X-Evil"] != nil || fields["User-Agent"] == "Evil" || options.proxy?.contains(Host.stranger) == true {
            state.complaints.append(.init(finding: .listOrders, text: "a request to \(host) obeys a server's list"))
        }
    }

    private func answer(
        _ request: TransportRequest, _ host: String, _ path: String, _ side: Int, _ state: inout State
    ) -> (String, ScriptedTransport.Answer) {
        switch host {
        case Host.own: return ownAnswer(request, side, &state)
        case Host.mirror, Host.port: return file(isOther: mirrorIsOther, request)
        case Host.link: return file(isOther: linkIsOther, request)
        case Host.target, Host.moved: return file(isOther: false, request)
        case Host.stranger: return ("strange", .file(Self.strange, etag: "\"e\"", to: request))
        case Host.lists:
            guard let document = state.documents[path] else {
                return ("strange", .file(Self.strange, etag: "\"e\"", to: request))
            }
            return (
                "a list", .file(document.bytes, etag: nil, to: request, fields: [.init("Content-Type", document.type)])
            )
        default: return ("404", .status(404))
        }
    }

    private static func digest(of bytes: [UInt8]) -> HeaderField {
        .init("Repr-Digest", "sha-256=:\(Bytes.base64(.sha256, bytes)):")
    }

    private func file(isOther: Bool, _ request: TransportRequest) -> (String, ScriptedTransport.Answer) {
        let bytes = isOther ? other : right
        let fields = mirrorsSendDigest ? [Self.digest(of: bytes)] : []
        return isOther
            ? ("other", .file(other, etag: "\"other\"", to: request, fields: fields))
            : ("right", .file(right, etag: "\"right\"", to: request, fields: fields))
    }

    private func ownAnswer(
        _ request: TransportRequest, _ side: Int, _ state: inout State
    ) -> (String, ScriptedTransport.Answer) {
        if state.redirects {
            // The transport follows the redirect by these rules.
            let target = "http://\(Host.target)/f"
            var rules = RedirectRules(url: "http://\(Host.own)/f", method: "GET", options: request.options)
            if let first = try? OutgoingRequest(request), let hop = try? rules.follow(status: 302, to: target) {
                let next = first.following(hop, secrets: request.secretHeaders)
                let fields = Dictionary(next.headers.map { ($0.name, $0.value) }) { $1 }
                var options = TransportOptions()
                options.netrc = next.usesNetrc
                Self.inspect(fields, URL(string: next.url), options, at: Host.target, &state)
            }
            var answer = ScriptedTransport.Answer.file(right, etag: "\"right\"", to: request)
            if case .head(var head)? = answer.steps.first {
                (head.url, head.redirects) = (target, 1)
                answer.steps[0] = .head(head)
            }
            return ("redirected", answer)
        }
        let isOdd = state.random.below(4) < state.oddity
        if state.isDown || isOdd && state.random.oneIn(4) { return ("503", .status(503)) }
        var fields: [HeaderField] = []
        if state.sendsDigest {
            fields.append(Self.digest(of: right))
            if request.task == state.task { state.bound.insert(side) }
        }
        if state.offersLink { fields.append(.init("Link", "<http://\(Host.link)/f>; rel=duplicate")) }
        let place = right.count / 4 + state.random.below(right.count / 2)
        if isOdd, state.random.oneIn(3) {
            return ("cut", .file(right, etag: "\"right\"", to: request, cut: place, fields: fields))
        }
        let gate = isOdd ? state.gate : nil
        return (
            isOdd ? "held" : "right",
            .file(right, etag: "\"right\"", to: request, gate: gate, pauseAt: place, fields: fields)
        )
    }
}
