import FKMiddleware
import Foundation

/// Which failures are tried again, when, and with which URL of the plan.
///
/// | failure | same URL again | next URL of the plan |
/// | --- | --- | --- |
/// | 408, 425, 429, 500, 502, 503, 504 | yes, after a delay or Retry-After | yes |
/// | 401, 403, 410 on a resumed transfer or a signed URL | once, at once: request middlewares sign anew | yes |
/// | any other error status | no | yes |
/// | name lookup, connect, timeout, connection lost, incomplete body | yes, after a delay | yes |
/// | TLS, proxy, redirect, bad range, encoded or too large body, protocol violation, wrong digest | no | yes |
/// | a full disk, too many open files | yes, after a delay | no |
/// | disk, destination, middleware, cancelled, bad input | no | no |
///
/// An error whose `isRetryable` is set is tried again whatever its row says.
///
/// The plan is the task's URL followed by its mirrors, and attempt n (from 0) takes entry `n % count`. An entry that
/// differs from the one that failed and has not had its attempt yet is tried at once; otherwise the delay is
/// `baseDelay * 2^n`, at most `maxDelay`, less up to `jitter` of itself.
package enum RetryRules {
    package enum Decision: Sendable, Hashable {
        case fail
        /// Begin the next attempt in `after` seconds with that entry of the plan. `hostPause`: nobody should ask the
        /// host that failed for so many seconds, because it said so.
        case retry(after: Double, nextURLIndex: Int, hostPause: Double?)
    }

    /// Statuses that pass by themselves.
    package static let retryableStatuses: Set<Int> = [408, 425, 429, 500, 502, 503, 504]
    /// Statuses that mean an expired signature or token when the request worked before.
    package static let expiryStatuses: Set<Int> = [401, 403, 410]

    /// Whether the same URL may work later without anybody changing anything.
    package static func isRetryable(status: Int) -> Bool { retryableStatuses.contains(status) }

    /// The same for any error.
    package static func isRetryable(_ error: DownloadError) -> Bool {
        if error.isRetryable { return true }
        return switch error.code {
        case .httpStatus: error.status.map(isRetryable(status:)) ?? false
        case .nameLookup, .connect, .timeout, .connectionLost, .incompleteBody: true
        default: false
        }
    }

    /// Whether the failure speaks about that URL or its server, so that another URL may do better.
    package static func concernsServer(_ error: DownloadError) -> Bool {
        switch error.code {
        case .httpStatus, .nameLookup, .connect, .timeout, .connectionLost, .incompleteBody, .tls, .proxy, .redirect,
            .badRange, .encodedBody, .tooLarge, .protocolViolation, .checksumMismatch, .changedOnServer,
            .invalidURL, .unsupportedScheme:
            true
        default: false
        }
    }

    /// What to do after a failed attempt.
    ///
    /// - Parameters:
    ///   - attempt: how many attempts were begun so far, the failed one included; from 1.
    ///   - mirrors: how many entries the plan has besides the first.
    ///   - resumed: bytes of an earlier attempt were held, or the URL looks signed (`looksSigned`).
    ///   - random: a number in 0..<1 for the jitter.
    ///   - nextIsSame: whether the plan's next entry is the URL that just failed; nil takes every entry for another.
    ///   - previous: the error of the attempt before; two expiry statuses in a row are not tried a third time.
    package static func decide(
        error: DownloadError, attempt: Int, policy: RetryPolicy, mirrors: Int, resumed: Bool, random: Double,
        nextIsSame: Bool? = nil, previous: DownloadError? = nil
    ) -> Decision {
        let count = max(0, mirrors) + 1
        let attempt = max(1, attempt)
        let next = attempt % count
        let isFresh = attempt < count
        let movesOn = isFresh && !(nextIsSame ?? false)
        let asked = asked(by: error, policy)

        if movesOn, concernsServer(error) {
            return .retry(after: 0, nextURLIndex: next, hostPause: asked)
        }
        guard attempt < policy.maxAttempts || isFresh else { return .fail }
        if isRetryable(error) {
            let delay = backOff(attempt: attempt, policy: policy, random: random)
            let sameHost = nextIsSame ?? (count == 1)
            return .retry(after: sameHost ? asked ?? delay : delay, nextURLIndex: next, hostPause: asked)
        }
        if isExpiry(error), resumed, !(previous.map(isExpiry) ?? false) {
            return .retry(after: 0, nextURLIndex: next, hostPause: nil)
        }
        // A, A, B and A answers 404: the second A has its turn at once, so that B is reached.
        if isFresh, concernsServer(error) { return .retry(after: 0, nextURLIndex: next, hostPause: nil) }
        return .fail
    }

    /// Seconds before attempt `attempt + 1`.
    package static func backOff(attempt: Int, policy: RetryPolicy, random: Double) -> Double {
        let full = min(policy.maxDelay, policy.baseDelay * pow(2, Double(min(max(attempt, 1) - 1, 62))))
        return full * (1 - policy.jitter * min(max(random, 0), 1))
    }

    /// What a server's Retry-After counts for, in seconds; nil without one.
    static func asked(by error: DownloadError, _ policy: RetryPolicy) -> Double? {
        error.retryAfter.flatMap { $0 > 0 ? min($0, policy.maxRetryAfter) : nil }
    }

    /// The most that `decide` may have asked for after that failure, in seconds.
    package static func longestDelay(
        after error: DownloadError?, attempt: Int, policy: RetryPolicy, mirrors: Int
    ) -> Double {
        guard let error else { return max(policy.maxDelay, policy.maxRetryAfter) }
        let delay = backOff(attempt: attempt, policy: policy, random: 0)
        guard let asked = asked(by: error, policy) else { return delay }
        return mirrors == 0 ? asked : max(delay, asked)
    }

    private static func isExpiry(_ error: DownloadError) -> Bool {
        error.code == .httpStatus && error.status.map(expiryStatuses.contains) ?? false
    }

    /// Whether the query carries a signature or token of a kind that expires.
    package static func looksSigned(_ url: String) -> Bool {
        guard let query = url.split(separator: "?", maxSplits: 1).dropFirst().first else { return false }
        return query.split(separator: "&").contains { pair in
            let name = pair.prefix { $0 != "=" }.lowercased()
            return name.hasPrefix("x-amz-") || name.hasPrefix("x-goog-") || name.hasPrefix("x-oss-")
                || signedNames.contains(name)
        }
    }

    private static let signedNames: Set<String> = [
        "signature", "sig", "sign", "token", "access_token", "auth", "auth_key", "expires", "expire", "e", "policy",
        "key-pair-id", "se", "hdnts", "hdnea", "verify", "md5", "hmac", "jwt", "ossaccesskeyid", "googleaccessid",
    ]

    // MARK: Errors from answers

    /// The error for an answer whose status is not one that delivers the file. After redirects it names the server that
    /// answered.
    package static func error(for head: ResponseHead, now: Date) -> DownloadError {
        let base = head.first("Date").flatMap { HTTPDate.parse($0, now: now) } ?? now
        let hint =
            switch head.status {
            case 401, 407: ": it wants a login"
            case 403: ": it does not allow access"
            case 404, 410: ": it has no such file"
            case 416: ": it cannot serve the range"
            case 429: ": it gets too many requests"
            case 300...399: ": a redirect that cannot be followed"
            case 500...599: ": it is in trouble itself"
            default: ""
            }
        return DownloadError(
            .httpStatus, "The server answered \(head.status)\(hint).",
            url: head.redirects > 0 ? URLMasking.mask(head.url) : nil, status: head.status,
            isRetryable: isRetryable(status: head.status),
            retryAfter: head.first("Retry-After").flatMap { parseRetryAfter($0, now: base) })
    }

    /// Seconds to wait from now on (RFC 9110 section 10.2.3), not capped; nil for what is negative, past or neither
    /// a number of seconds nor a date.
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
