/// The state of a transfer that any thread reads: the line in use, pauses, and how long the server has been silent. A lock
/// of `URLSessionTransfer` protects it. Times are in seconds.
struct URLSessionFlow {
    /// The result of a check.
    enum Check: Equatable {
        /// Nothing is to be done.
        case fine
        /// The server was silent for longer than allowed: this many seconds. The text names what was expected.
        case silent(String, Double)
        /// Foundation has received the response of this request without reporting it. It is handled without its body.
        case unreported(request: Int)
    }

    /// The line of the request in progress; nil before the first one and after the end.
    private(set) var line: URLSessionLine?
    private(set) var isCancelled = false
    /// True if the handler has refused the last piece. Nothing more may be read.
    private(set) var isPaused = false
    /// The number of requests so far: the first one, and one for each redirect.
    private(set) var requests = 0
    private var hasHead = false
    /// The body only explains a status.
    private var isAside = false
    /// The time without a byte from the server.
    private var silence = 0.0
    /// The bytes of the body since then.
    private var newBytes = 0
    /// The time for which Foundation has received a response without reporting it.
    private var unreported = 0.0

    // MARK: Events

    /// A request begins on a line.
    mutating func begin(on line: URLSessionLine) {
        self.line = line
        unreported = 0
        requests += 1
        resetSilence()
    }

    /// The request has ended. Returns its line.
    mutating func releaseLine() -> URLSessionLine? { line.take() }

    mutating func cancel() { isCancelled = true }

    /// The final head has arrived.
    ///
    /// - Parameter isAside: true if the body only explains a status.
    mutating func answered(isAside: Bool) {
        hasHead = true
        self.isAside = isAside
        silence = 0
    }

    /// Bytes of the body have arrived.
    ///
    /// - Parameter enough: the number of bytes that ends a silence.
    mutating func heard(_ bytes: Int, enough: Int) {
        newBytes += bytes
        if newBytes >= enough { resetSilence() }
    }

    mutating func pause() { isPaused = true }

    /// Ends a pause. The time of the pause does not count as silence.
    mutating func resume() {
        isPaused = false
        resetSilence()
    }

    /// Ends a pause because the transfer ends.
    mutating func endPause() { isPaused = false }

    private mutating func resetSilence() {
        silence = 0
        newBytes = 0
    }

    // MARK: The check

    /// The maximum length in bytes of a redirect's body that is waited for.
    static let maxRedirectBody: Int64 = 64 << 10
    /// The maximum time for which a redirect's body is waited for.
    static let redirectSeconds = 0.5

    /// Checks the silence of the server.
    ///
    /// - Parameters:
    ///   - seconds: the time since the last check.
    ///   - silentLength: the length in bytes of a response that Foundation has received and not reported; nil without one.
    ///   - allowed: the maximum silence.
    mutating func check(after seconds: Double, silentLength: Int64?, allowed: Double) -> Check {
        silence += seconds
        if !hasHead, silentLength != nil { unreported += seconds }
        let limit = isAside ? SilenceWatch.asideSeconds : allowed
        if silence >= limit {
            let what = !hasHead ? SilenceWatch.noAnswer : newBytes > 0 ? SilenceWatch.tooLittle : SilenceWatch.nothing
            return .silent(what, limit)
        }
        guard !hasHead, let silentLength, silentLength > Self.maxRedirectBody || unreported >= Self.redirectSeconds
        else { return .fine }
        return .unreported(request: requests)
    }
}
