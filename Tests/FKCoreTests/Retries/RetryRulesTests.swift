import TestSupport
import Testing

private func status(_ status: Int, retryAfter: Double? = nil) -> DownloadError {
    DownloadError(
        .httpStatus, "x", status: status, isRetryable: RetryRules.isRetryable(status: status),
        retryAfter: retryAfter.map { Duration(inSeconds: $0) })
}

private let even = RetryPolicy(maxAttempts: 5, baseDelay: .seconds(1), maxDelay: .seconds(60), jitter: 0)

@Suite("Retry rules")
struct RetryRulesTests {
    @Test("a 407 is the proxy's")
    func proxyLogin() {
        let error = RetryRules.error(for: ResponseHead(status: 407, fields: [], url: "http://h/"), now: Date())
        #expect(error.message == "The server answered 407: the proxy wants a login.")
    }

    @Test(
        "a 401 names the kind of login that it asks for",
        arguments: [
            (nil, "it wants a login.", "it refuses the login."),
            ("Digest realm=\"a\", nonce=\"b\", BASIC realm=\"c\"", "it wants a login.", "it refuses the login."),
            (
                "Digest realm=\"a\", qop=\"auth\"", "it wants a login by Digest, and only Basic is supported.",
                "it wants a login by Digest, and only Basic is supported."
            ),
            (
                "Negotiate, NTLM", "it wants a login by Negotiate or NTLM, and only Basic is supported.",
                "it wants a login by Negotiate or NTLM, and only Basic is supported."
            ),
            (
                "Bearer realm=\"a\"", "it wants a token in the header field Authorization, as Bearer TOKEN.",
                "it refuses the login, and wants a token in the header field Authorization, as Bearer TOKEN."
            ),
            ("Bearer error=\"invalid_token\"", "it refuses the token.", "it refuses the token."),
        ] as [(String?, String, String)])
    func logins(challenge: String?, wanted: String, refused: String) {
        let fields = challenge.map { [HeaderField("WWW-Authenticate", $0)] } ?? []
        let error = RetryRules.error(for: ResponseHead(status: 401, fields: fields, url: "http://h/"), now: Date())
        #expect(error.message == "The server answered 401: \(wanted)")
        #expect((error.remedy == .giveLogin) == (wanted == "it wants a login."))
        #expect(RetryRules.refusingLogin(error.message) == "The server answered 401: \(refused)")
    }

    @Test("a 403 is waited for if it says how long: a server's limit of requests")
    func limited() {
        func error(_ fields: [HeaderField]) -> DownloadError {
            RetryRules.error(for: ResponseHead(status: 403, fields: fields, url: "http://h/"), now: Date())
        }
        #expect(!RetryRules.isRetryable(error([])))
        let asked = error([HeaderField("Retry-After", "7")])
        #expect(RetryRules.isRetryable(asked) && asked.retryAfter == .seconds(7))
    }

    @Test("a 202 is waited for if it says how long, and says what it means")
    func accepted() {
        func error(_ fields: [HeaderField]) -> DownloadError {
            RetryRules.error(for: ResponseHead(status: 202, fields: fields, url: "http://h/"), now: Date())
        }
        let plain = error([])
        #expect(plain.message == "The server answered 202: the file is not ready yet. Ask for it again later.")
        #expect(!RetryRules.isRetryable(plain))
        let asked = error([HeaderField("Retry-After", "7")])
        #expect(RetryRules.isRetryable(asked) && asked.retryAfter == .seconds(7))
    }

    @Test(
        "401, 403 and 410 in the middle ask the same address again, once without progress, and count as no attempt",
        arguments: [401, 403, 410, 404, 500], [0, 1])
    func expiry(code: Int, mirrors: Int) {
        func decide(isUnderway: Bool, hasProgress: Bool, previous: DownloadError?) -> RetryRules.Decision {
            RetryRules.decide(
                error: status(code), attempt: 9, policy: even, mirrors: mirrors, resumed: isUnderway, random: 0,
                isUnderway: isUnderway, hasProgress: hasProgress, previous: previous)
        }
        let isExpiry = RetryRules.expiryStatuses.contains(code)
        for hasProgress in [false, true] {
            for previous in [nil, status(403), status(500)] {
                let asksAgain = isExpiry && (hasProgress || previous?.status != 403)
                let decision = decide(isUnderway: true, hasProgress: hasProgress, previous: previous)
                #expect((decision == .askAgain) == asksAgain)
                #expect(decide(isUnderway: false, hasProgress: false, previous: previous) != .askAgain)
            }
        }
    }

    @Test(
        "without a descriptor it waits, and the attempt does not count, whatever the rest is",
        arguments: [EMFILE, ENFILE])
    func outOfDescriptors(number: Int32) {
        for attempt in [1, 5, 100] {
            for mirrors in [0, 2] {
                let decision = RetryRules.decide(
                    error: DownloadError(system: number, "open", "f"), attempt: attempt, policy: even, mirrors: mirrors,
                    resumed: false, random: 0)
                #expect(decision == .wait(seconds: RetryRules.descriptorDelay))
            }
        }
    }

    @Test("statuses that pass by themselves are exactly these", arguments: 100...599)
    func statuses(code: Int) {
        #expect(RetryRules.isRetryable(status: code) == [408, 425, 429, 500, 502, 503, 504].contains(code))
        #expect(RetryRules.isRetryable(status(code)) == RetryRules.isRetryable(status: code))
    }

    static let codes: [(DownloadError.Code, retry: Bool, mirror: Bool)] = [
        (.nameLookup, true, true), (.connect, true, true), (.timeout, true, true), (.connectionLost, true, true),
        (.incompleteBody, true, true), (.tls, false, true), (.proxy, false, true), (.redirect, false, true),
        (.badRange, false, true), (.encodedBody, false, true), (.tooLarge, false, true),
        (.protocolViolation, false, true), (.checksumMismatch, false, true), (.changedOnServer, false, true),
        (.invalidURL, false, true), (.unsupportedScheme, false, true), (.disk, false, false), (.noSpace, false, false),
        (.destination, false, false), (.fileExists, false, false), (.middleware, false, false),
        (.rejected, false, false), (.cancelled, false, false), (.invalidArgument, false, false),
        (.corruptInfo, false, false), (.workPathBusy, false, false),
    ]

    @Test("codes: the same URL again, or the next of the plan", arguments: codes)
    func code(code: DownloadError.Code, retry: Bool, mirror: Bool) {
        let error = DownloadError(code, "x")
        #expect(RetryRules.isRetryable(error) == retry)
        #expect(RetryRules.concernsServer(error) == mirror)
        let alone = decide(error, 1)
        #expect(alone == (retry ? .retry(after: 1, nextURLIndex: 0, hostPause: nil) : .fail))
        let mirrored = decide(error, 1, mirrors: 1)
        #expect(mirrored == (mirror ? .retry(after: 0, nextURLIndex: 1, hostPause: nil) : .fail))
        let flagged = DownloadError(code, "x", isRetryable: true)
        #expect(decide(flagged, 1) == .retry(after: 1, nextURLIndex: 0, hostPause: nil))
    }

    @Test(
        "delays double up to the longest",
        arguments: [(1, 1.0), (2, 2), (3, 4), (4, 8), (5, 16), (6, 32), (7, 60), (99, 60)])
    func backOff(attempt: Int, delay: Double) {
        var patient = even
        patient.maxAttempts = 100
        #expect(decide(status(503), attempt, policy: patient) == .retry(after: delay, nextURLIndex: 0, hostPause: nil))
    }

    @Test("chance takes at most the jitter's part", arguments: [0.0, 0.25, 0.5, 0.999, 1, 7, -3])
    func jitter(random: Double) {
        let delay = RetryRules.backOff(attempt: 3, policy: RetryPolicy(jitter: 0.5), random: random)
        #expect(abs(delay - 4 * (1 - 0.5 * min(max(random, 0), 1))) < 1e-9)
        #expect((2...4).contains(delay))
    }

    @Test("the last attempt is the last", arguments: 1...6)
    func last(attempt: Int) {
        let expected: RetryRules.Decision =
            attempt < 5
            ? .retry(
                after: RetryRules.backOff(attempt: attempt, policy: even, random: 0), nextURLIndex: 0, hostPause: nil)
            : .fail
        #expect(decide(status(500), attempt) == expected)
        #expect(decide(status(500), 1, policy: RetryPolicy(maxAttempts: 1)) == .fail)
    }

    @Test(
        "Retry-After is honoured and capped, for the task and its host",
        arguments: [(5.0, 5.0), (600, 600), (601, 600), (31_536_000, 600), (.greatestFiniteMagnitude, 600)])
    func retryAfter(asked: Double, counted: Double) {
        #expect(
            decide(status(503, retryAfter: asked), 1) == .retry(after: counted, nextURLIndex: 0, hostPause: counted))
        // The next URL is tried at once, and the host is left alone all the same.
        #expect(
            decide(status(429, retryAfter: asked), 1, mirrors: 1)
                == .retry(after: 0, nextURLIndex: 1, hostPause: counted))
    }

    @Test("Retry-After of nothing leaves the delay", arguments: [0.0, -5])
    func noRetryAfter(asked: Double) {
        #expect(decide(status(503, retryAfter: asked), 2) == .retry(after: 2, nextURLIndex: 0, hostPause: nil))
    }

    @Test("Retry-After with another host next waits only the usual delay")
    func retryAfterWrapped() {
        #expect(
            decide(status(503, retryAfter: 300), 2, mirrors: 1) == .retry(after: 2, nextURLIndex: 0, hostPause: 300))
    }

    @Test("an expired signature is made anew once", arguments: [401, 403, 410])
    func expiry(code: Int) {
        #expect(decide(status(code), 1) == .fail)
        #expect(decide(status(code), 2, resumed: true) == .retry(after: 0, nextURLIndex: 0, hostPause: nil))
        #expect(
            decide(status(code), 3, resumed: true, previous: status(503))
                == .retry(after: 0, nextURLIndex: 0, hostPause: nil))
        #expect(decide(status(code), 3, resumed: true, previous: status(403)) == .fail)
        #expect(decide(status(code), 5, resumed: true) == .fail)
        #expect(decide(status(404), 2, resumed: true) == .fail)
    }

    @Test(
        "A, A, B: the plan is walked to its end",
        arguments: [
            // (error, attempt, next is the same URL, decision)
            (status(404), 1, true, .retry(after: 0, nextURLIndex: 1, hostPause: nil)),
            (status(404), 2, false, .retry(after: 0, nextURLIndex: 2, hostPause: nil)),
            (status(404), 3, false, .fail),
            (status(503), 1, true, .retry(after: 1, nextURLIndex: 1, hostPause: nil)),
            (status(503), 2, false, .retry(after: 0, nextURLIndex: 2, hostPause: nil)),
            (status(503), 3, false, .retry(after: 4, nextURLIndex: 0, hostPause: nil)),
            (status(503), 4, true, .retry(after: 8, nextURLIndex: 1, hostPause: nil)),
            (status(503), 5, false, .fail),
            (status(503, retryAfter: 9), 1, true, .retry(after: 9, nextURLIndex: 1, hostPause: 9)),
        ] as [(DownloadError, Int, Bool, RetryRules.Decision)])
    func plan(error: DownloadError, attempt: Int, same: Bool, expected: RetryRules.Decision) {
        let decision = RetryRules.decide(
            error: error, attempt: attempt, policy: even, mirrors: 2, resumed: false, random: 0, nextIsSame: same)
        #expect(decision == expected)
    }

    @Test("every entry of the plan has its attempt, even of a single attempt", arguments: 1...8)
    func manyMirrors(attempt: Int) {
        let decision = decide(status(503), attempt, policy: RetryPolicy(maxAttempts: 1), mirrors: 7)
        #expect(decision == (attempt < 8 ? .retry(after: 0, nextURLIndex: attempt, hostPause: nil) : .fail))
    }

    @Test(
        "signed URLs are known by their query",
        arguments: [
            ("https://b.s3.example/a?X-Amz-Signature=1&X-Amz-Expires=2", true),
            ("https://a/b?Signature=x&Expires=1", true), ("https://a/b?sv=1&sig=x&se=2", true),
            ("https://a/b?TOKEN=1", true), ("https://a/b?x-goog-date=1", true), ("https://a/b", false),
            ("https://a/token=1", false), ("https://a/b?page=2", false), ("https://a/b?", false),
        ])
    func signed(url: String, expected: Bool) {
        #expect(url.looksSigned == expected)
    }

    @Test(
        "Retry-After is read",
        arguments: [
            ("120", 120), (" 0 ", 0), ("99999999999999999999999", 1e23), ("-5", nil), ("1.5", nil), ("", nil),
            ("soon", nil), ("Sun, 06 Nov 1994 08:49:47 GMT", 10), ("Sunday, 06-Nov-94 08:49:47 GMT", 10),
            ("Sun Nov  6 08:49:47 1994", 10), ("Sun, 06 Nov 1994 08:49:37 GMT", 0),
            ("Sun, 06 Nov 1994 08:49:36 GMT", nil),
            (String(repeating: "9", count: 400), Double.greatestFiniteMagnitude),
        ] as [(String, Double?)])
    func parse(value: String, expected: Double?) {
        let now = Date(timeIntervalSince1970: 784_111_777)
        #expect(RetryRules.parseRetryAfter(value, now: now) == expected)
    }

    @Test("a policy has its values in seconds in its stored form, and keeps what it is given")
    func policy() throws {
        let wild = RetryPolicy(maxAttempts: 0, baseDelay: .seconds(-1), jitter: 9)
        #expect(wild.maxAttempts == 0 && wild.baseDelay == .seconds(-1) && wild.jitter == 9)
        let standard = RetryPolicy()
        #expect(standard.maxAttempts == 5 && standard.baseDelay == .seconds(1) && standard.maxDelay == .seconds(60))
        #expect(standard.jitter == 0.5 && standard.maxRetryAfter == .seconds(600))
        #expect(try JSONDecoder().decode(RetryPolicy.self, from: Data("{}".utf8)) == standard)
        // The stored form has seconds.
        let text = "{\"baseDelay\":0.25,\"jitter\":0.5,\"maxAttempts\":5,\"maxDelay\":60,\"maxRetryAfter\":600}"
        let quick = try JSONDecoder().decode(RetryPolicy.self, from: Data(text.utf8))
        #expect(quick == RetryPolicy(baseDelay: .milliseconds(250)))
        let encoder = JSONEncoder()
        encoder.outputFormatting = .sortedKeys
        #expect(String(decoding: try encoder.encode(quick), as: UTF8.self) == text)
        #expect(try JSONDecoder().decode(RetryPolicy.self, from: JSONEncoder().encode(wild)) == wild)
    }

    @Test(
        "nobody waits longer than decided, whatever the clock says since", arguments: 1...9,
        [nil, 0, 2, 7_200] as [Double?])
    func longest(attempt: Int, retryAfter: Double?) {
        let policy = RetryPolicy(maxAttempts: 100, baseDelay: .seconds(1), maxDelay: .seconds(60), jitter: 0)
        let error = status(503, retryAfter: retryAfter)
        for mirrors in 0...1 {
            let longest = RetryRules.longestDelay(after: error, attempt: attempt, policy: policy, mirrors: mirrors)
            let decision = decide(error, attempt, policy: policy, mirrors: mirrors)
            if case .retry(let delay, _, _) = decision { #expect(mirrors == 0 ? longest == delay : longest >= delay) }
            #expect(longest <= max(policy.maxDelaySeconds, policy.maxRetryAfterSeconds))
        }
        // A server that asks for two seconds each time is not left alone for a minute after the sixth.
        #expect(
            RetryRules.longestDelay(after: status(503, retryAfter: 2), attempt: 9, policy: policy, mirrors: 0) == 2)
        #expect(RetryRules.longestDelay(after: nil, attempt: 1, policy: policy, mirrors: 0) >= policy.maxDelaySeconds)
    }

    private func decide(
        _ error: DownloadError, _ attempt: Int, policy: RetryPolicy = even, mirrors: Int = 0, resumed: Bool = false,
        previous: DownloadError? = nil
    ) -> RetryRules.Decision {
        RetryRules.decide(
            error: error, attempt: attempt, policy: policy, mirrors: mirrors, resumed: resumed, random: 0,
            previous: previous)
    }
}
