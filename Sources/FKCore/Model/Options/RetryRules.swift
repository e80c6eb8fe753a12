import FKMiddleware
import Foundation

/// Decides which failures are retried, when, and with which URL of the plan.
///
/// | failure | same URL again | next URL of the plan |
/// | --- | --- | --- |
/// | 408, 425, 429, 500, 502, 503, 504 | yes, after a delay or Retry-After | yes |
/// | a status that the policy of the host names (`HostPolicy.retryStatuses`) | yes, after a delay or Retry-After | yes |
/// | 202, with Retry-After: the server prepares the file | yes, after it | yes |
/// | 403, with Retry-After: a limit of requests, as GitHub's second one | yes, after it | yes |
/// | 401, 403, 410 when bytes are there | at once, and the attempt does not count: the link may have expired | |
/// | 401, 403, 410 on a signed URL | once, at once: request middlewares sign anew | yes |
/// | any other error status | no | yes |
/// | name lookup, connect, timeout, connection lost, incomplete body | yes, after a delay | yes |
/// | TLS, proxy, redirect, bad range, encoded or too large body, protocol violation, wrong digest | no | yes |
/// | too many open files | yes, after `descriptorDelay`, and the attempt does not count | no |
/// | a full disk | yes, after a delay | no |
/// | disk, destination, middleware, cancelled, bad input | no | no |
///
/// An error with `isRetryable` set is retried, whatever its row says.
///
/// The plan is the task's URL followed by its mirrors. Attempt n (from 0) uses entry `n % count`. An entry that
/// differs from the failed one and has had no attempt yet is tried at once. Otherwise the delay is `baseDelay * 2^n`,
/// at most `maxDelay`, less a random share of up to `jitter`. The limit of attempts and the delay count from the last attempt that
/// brought bytes (`ProgressMark`).
package enum RetryRules {
    /// The decision after a failed attempt.
    package enum Decision: Sendable, Hashable {
        case fail
        /// The next attempt begins in `after` seconds with the plan's entry `nextURLIndex`. `hostPause` is the number
        /// of seconds that the failed server asked all clients to wait; nil if it did not.
        case retry(after: Double, nextURLIndex: Int, hostPause: Double?)
        /// The same entry of the plan is asked again at once, and the failed attempt does not count. The link that it
        /// was redirected to, or that a middleware made, has expired.
        case askAgain
        /// The same entry of the plan is tried again in that many seconds, and the failed attempt does not count. The
        /// process is out of descriptors, which says nothing about the file or its server.
        case wait(seconds: Double)
    }

    /// The seconds until a task that got no descriptor is tried again.
    package static let descriptorDelay = 5.0

    /// Statuses of transient errors.
    package static let retryableStatuses: Set<Int> = [408, 425, 429, 500, 502, 503, 504]
    /// Statuses that mean an expired signature or token if an earlier request succeeded.
    package static let expiryStatuses: Set<Int> = [401, 403, 410]

    /// True if the same URL may succeed later without a change by anyone.
    package static func isRetryable(status: Int) -> Bool { retryableStatuses.contains(status) }

    /// True if the same request may succeed later.
    package static func isRetryable(_ error: DownloadError) -> Bool {
        if error.isRetryable { return true }
        return switch error.code {
        case .httpStatus: error.status.map(isRetryable(status:)) ?? false
        case .nameLookup, .connect, .timeout, .connectionLost, .incompleteBody: true
        default: false
        }
    }

    /// True if the failure concerns the URL or its server, so that another URL may succeed.
    package static func concernsServer(_ error: DownloadError) -> Bool {
        switch error.code {
        case .httpStatus, .nameLookup, .connect, .timeout, .connectionLost, .incompleteBody, .tls, .proxy, .redirect,
            .badRange, .encodedBody, .tooLarge, .protocolViolation, .checksumMismatch, .changedOnServer,
            .invalidURL, .unsupportedScheme:
            true
        default: false
        }
    }

    /// Decides what follows a failed attempt.
    ///
    /// - Parameters:
    ///   - attempt: the number of attempts so far, including the failed one; from 1. It decides about the next URL.
    ///   - counted: the number of attempts since the last progress (`TaskRecord.countedAttempts`), which decides about the end
    ///     and the delay; nil, the default, counts all.
    ///   - mirrors: the number of entries in the plan besides the first.
    ///   - resumed: true if bytes of an earlier attempt were held, or the URL looks signed (`looksSigned`).
    ///   - random: a number in 0..<1 for the jitter.
    ///   - isUnderway: true if bytes of the file are there. The default is false.
    ///   - hasProgress: true if the failed attempt has received bytes. The default is false.
    ///   - nextIsSame: true if the plan's next entry is the failed URL; nil treats all entries as different.
    ///   - previous: the error of the attempt before. Two expiry statuses in a row are not retried.
    package static func decide(
        error: DownloadError, attempt: Int, policy: RetryPolicy, mirrors: Int, resumed: Bool, random: Double,
        counted: Int? = nil, isUnderway: Bool = false, hasProgress: Bool = false, nextIsSame: Bool? = nil,
        previous: DownloadError? = nil
    ) -> Decision {
        let count = max(0, mirrors) + 1
        let attempt = max(1, attempt)
        let counted = max(1, min(counted ?? attempt, attempt))
        let next = attempt % count
        let isFresh = attempt < count
        let movesOn = isFresh && !(nextIsSame ?? false)
        let asked = asked(by: error, policy)
        // A file that is not ready says nothing about the others of its host.
        let pause = error.status == 202 ? nil : asked

        if error.isOutOfDescriptors { return .wait(seconds: descriptorDelay) }
        // Without progress it is asked again only once.
        if isExpiry(error), isUnderway, hasProgress || !(previous.map(isExpiry) ?? false) { return .askAgain }
        if movesOn, concernsServer(error) {
            return .retry(after: 0, nextURLIndex: next, hostPause: pause)
        }
        guard counted < policy.maxAttempts || isFresh else { return .fail }
        if isRetryable(error) {
            let delay = backOff(attempt: counted, policy: policy, random: random)
            let sameHost = nextIsSame ?? (count == 1)
            return .retry(after: sameHost ? asked ?? delay : delay, nextURLIndex: next, hostPause: pause)
        }
        if isExpiry(error), resumed, !(previous.map(isExpiry) ?? false) {
            return .retry(after: 0, nextURLIndex: next, hostPause: nil)
        }
        // For the plan A, A, B with a 404 from A, the second A is tried at once, so that B is reached.
        if isFresh, concernsServer(error) { return .retry(after: 0, nextURLIndex: next, hostPause: nil) }
        return .fail
    }

    /// The delay before attempt `attempt + 1` in seconds.
    package static func backOff(attempt: Int, policy: RetryPolicy, random: Double) -> Double {
        let full = min(policy.maxDelaySeconds, policy.baseDelaySeconds * pow(2, Double(min(max(attempt, 1) - 1, 62))))
        return full * (1 - policy.jitter * min(max(random, 0), 1))
    }

    /// The server's Retry-After in seconds, limited by the policy; nil without one.
    package static func asked(by error: DownloadError, _ policy: RetryPolicy) -> Double? {
        error.retryAfterSeconds.flatMap { $0 > 0 ? min($0, policy.maxRetryAfterSeconds) : nil }
    }

    /// The maximum delay in seconds that `decide` returns for that failure.
    package static func longestDelay(
        after error: DownloadError?, attempt: Int, policy: RetryPolicy, mirrors: Int
    ) -> Double {
        guard let error else { return max(policy.maxDelaySeconds, policy.maxRetryAfterSeconds) }
        let delay = backOff(attempt: attempt, policy: policy, random: 0)
        guard let asked = asked(by: error, policy) else { return delay }
        return mirrors == 0 ? asked : max(delay, asked)
    }

    private static func isExpiry(_ error: DownloadError) -> Bool {
        error.code == .httpStatus && !error.isRetryable && error.status.map(expiryStatuses.contains) ?? false
    }

    // MARK: Errors from answers

    /// The error for a response whose status does not deliver the file. After redirects its URL is that of the server
    /// that answered. Retry-After has precedence over the limits that a 429 announces.
    package static func error(for head: ResponseHead, now: Date) -> DownloadError {
        let wait = retryAfter(of: head, now: now)
        let login = head.status == 401 ? wantedLogin(head) : nil
        let hint =
            switch head.status {
            case 202: ": the file is not ready yet. Ask for it again later"
            case 204, 205: ": it has no content for this address"
            case 401: ": \(login ?? plainLogin)"
            case 407: ": the proxy wants a login"
            case 403 where wait != nil: ": it does not allow access for now"
            case 403: ": it does not allow access"
            case 404, 410: ": it has no such file"
            case 416: ": it says that it has no such range"
            case 429: ": it gets too many requests"
            case 304: ": it says that the file has not changed, and was not asked"
            case 300...399 where head["Location"]?.isEmpty != false: ": a redirect that names no address"
            case 300...399: ": a redirect that cannot be followed"
            case 500...599: ": it has a problem of its own"
            default: ""
            }
        let remedy: Remedy? =
            head.status == 401 && login == nil ? .giveLogin : head.status == 407 ? .giveProxyLogin : nil
        return DownloadError(
            .httpStatus, "The server answered \(head.status)\(hint).",
            url: head.redirects > 0 ? head.url.masked : nil, status: head.status,
            isRetryable: isRetryable(status: head.status) || [202, 403].contains(head.status) && wait != nil,
            retryAfter: wait
                ?? (head.status == 429
                    ? RateLimitFields(head, now: now).exhausted.map { Duration(inSeconds: $0) } : nil),
            remedy: remedy)
    }

    private static let (plainLogin, token) = ("it wants a login", "it wants a token")

    /// What a 401 asks for, where it does not take a name and a password as they are sent (RFC 7617); nil if it may.
    private static func wantedLogin(_ head: ResponseHead) -> String? {
        guard let text = head["WWW-Authenticate"]?.lowercased() else { return nil }
        // The first word of each part; a challenge may have several parts, whose other words have an equals sign.
        let words = text.split(separator: ",").compactMap { $0.split(separator: " ").first.map(String.init) }
        if words.contains("basic") { return nil }
        if words.contains("bearer") {
            return text.contains("invalid_token")
                ? "it refuses the token" : "\(token) in the header field Authorization, as Bearer TOKEN"
        }
        let names = ["digest": "Digest", "ntlm": "NTLM", "negotiate": "Negotiate"]
        let asked = names.keys.sorted().filter(words.contains).compactMap { names[$0] }
        guard !asked.isEmpty else { return nil }
        return "it wants a login by \(asked.joined(separator: " or ")), and only Basic is supported"
    }

    /// The message of a 401 or 407 after a request that had a login for the server, or for the proxy.
    package static func refusingLogin(_ message: String) -> String {
        message.replacing("\(plainLogin).", with: "it refuses the login.")
            .replacing(token, with: "it refuses the login, and wants a token")
            .replacing("the proxy wants a login", with: "the proxy refuses the login")
    }

    /// The time to wait that the response asks for; nil without a valid `Retry-After`. A date is compared with the
    /// response's own `Date`, or with `now`.
    package static func retryAfter(of head: ResponseHead, now: Date) -> Duration? {
        guard let value = head.first("Retry-After") else { return nil }
        let base = head.first("Date").flatMap { HTTPDate.parse($0, now: now) } ?? now
        return parseRetryAfter(value, now: base).map { Duration(inSeconds: $0) }
    }

    /// The number of seconds to wait from now (RFC 9110 section 10.2.3), without a maximum. Returns nil for a
    /// negative or past value, and for a text that is neither a number of seconds nor a date.
    package static func parseRetryAfter(_ value: String, now: Date) -> Double? {
        let text = value.trimmingCharacters(in: .whitespaces)
        if !text.isEmpty, text.utf8.allSatisfy(\.isASCIIDigit) {
            return Double(text).flatMap { $0.isFinite ? $0 : .greatestFiniteMagnitude }
        }
        guard let date = HTTPDate.parse(text, now: now) else { return nil }
        let seconds = date.timeIntervalSince(now)
        return seconds < 0 ? nil : seconds
    }
}

extension String {
    /// True if the query of the URL contains a signature or token of a kind that expires.
    package var looksSigned: Bool {
        guard let query = split(separator: "?", maxSplits: 1).dropFirst().first else { return false }
        return query.split(separator: "&").contains { pair in
            let name = pair.prefix { $0 != "=" }.lowercased()
            return name.hasPrefix("x-amz-") || name.hasPrefix("x-goog-") || name.hasPrefix("x-oss-")
                || Self.signedNames.contains(name)
        }
    }

    private static let signedNames: Set<String> = [
        "signature", "sig", "sign", "token", "access_token", "auth", "auth_key", "expires", "expire", "e", "policy",
        "key-pair-id", "se", "hdnts", "hdnea", "verify", "md5", "hmac", "jwt", "ossaccesskeyid", "googleaccessid",
    ]
}
