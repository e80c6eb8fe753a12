/// The way in which a request was sent, and how it is sent again if it ended without an answer. A value type.
///
/// | the end | sent again | how often |
/// | --- | --- | --- |
/// | a 408 on a connection that was used before, over HTTP/1 (RFC 9110 section 15.5.9) | on a new connection | once |
/// | a close or reset on such a connection, before any byte of the answer (RFC 9112 section 9.3.1) | on a new connection; over HTTP/2 on any other | once |
/// | GOAWAY or RST_STREAM with HTTP_1_1_REQUIRED or INADEQUATE_SECURITY | over HTTP/1.1, as all later requests to the server | once |
/// | GOAWAY or RST_STREAM with ENHANCE_YOUR_CALM | when the server has half as many streams (`StreamGate`) | three times |
/// | HTTP/2 failed before any byte of the answer, for a reason that libcurl does not tell | with libcurl's log, which tells it | once |
///
/// None of them counts as an attempt. Only GET and HEAD are sent again.
struct Sending: Hashable {
    enum Again: Hashable {
        case onNewConnection
        case overHTTP1
        case calmly
        case withLog
        /// On any connection but the one that was lost.
        case onOtherConnection
    }

    /// True once a byte of the answer has arrived.
    var isAnswered = false
    /// True for a 408 that the server sent before it read the request.
    var isStale = false
    /// True if the connection was used before.
    var isReused = false
    /// True if the request may have been sent over HTTP/2, and may be sent over HTTP/1.1.
    var mayHTTP2 = false
    /// True if libcurl blames HTTP/2 for the end.
    var isHTTP2Failure = false
    /// True if the server wants HTTP/1.1.
    var wantsHTTP1 = false
    /// True if the server wants fewer streams.
    private(set) var wantsCalm = false
    /// True if libcurl logs, so that the reason of a GOAWAY is seen.
    private(set) var listens = false

    private var isRepeated = false
    private var isDowngraded = false
    private var calmed = 0

    init() {}

    /// The next one, after a request that is sent again.
    init(after again: Again, _ former: Sending) {
        (isRepeated, isDowngraded, calmed, listens) =
            (former.isRepeated, former.isDowngraded, former.calmed, former.listens)
        switch again {
        case .onNewConnection, .onOtherConnection: isRepeated = true
        case .overHTTP1: isDowngraded = true
        case .calmly: calmed += 1
        case .withLog: listens = true
        }
    }

    /// Reads the error code in a text of libcurl: `GOAWAY, error=13, last_stream=0`, `not cleanly: HTTP_1_1_REQUIRED (err 13)`.
    mutating func record(_ text: String) {
        func tells(_ name: String, _ code: Int) -> Bool {
            text.contains("GOAWAY, error=\(code),") || text.contains("(err \(code))") || text.contains(name)
        }
        if tells("HTTP_1_1_REQUIRED", 13) || tells("INADEQUATE_SECURITY", 12) { wantsHTTP1 = true }
        if tells("ENHANCE_YOUR_CALM", 11) { wantsCalm = true }
    }

    /// Takes over what the server has told other transfers of the connection.
    mutating func learn(from others: [Sending]) {
        if others.contains(where: \.wantsHTTP1) { wantsHTTP1 = true }
        if others.contains(where: \.wantsCalm) { wantsCalm = true }
    }

    /// How the request is sent again; nil if its end counts.
    func again() -> Again? {
        if isStale { return isRepeated ? nil : .onNewConnection }
        guard !isAnswered else { return nil }
        if wantsHTTP1 { return mayHTTP2 && !isDowngraded ? .overHTTP1 : nil }
        if wantsCalm { return calmed < 3 ? .calmly : nil }
        if isHTTP2Failure, mayHTTP2, !listens { return .withLog }
        guard isReused, !isRepeated else { return nil }
        return isHTTP2Failure || mayHTTP2 ? .onOtherConnection : .onNewConnection
    }
}
