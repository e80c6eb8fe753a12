import FKMiddleware
import Foundation

/// The limits of requests that a response announces, so that a client can slow down before a 429.
///
/// | fields | form |
/// | --- | --- |
/// | `RateLimit`, `RateLimit-Policy` | `"name";r=50;t=30`, `"name";q=100;w=60`: several policies, `pk` for the client's partition |
/// | `RateLimit` of earlier drafts | `limit=100, remaining=50, reset=30` |
/// | `RateLimit-Limit`, `-Remaining`, `-Reset` | `100, 100;w=60`, `50`, `30` |
/// | `X-RateLimit-Limit`, `-Remaining`, `-Reset` | the same; the reset may be a time of day |
///
/// The first form of which a response has a usable limit counts. A reset of more than a year is seconds since 1970. A
/// value that is negative, malformed or more than a year is ignored together with its field.
package struct RateLimitFields: Sendable, Hashable {
    /// One limit.
    package struct Limit: Sendable, Hashable {
        /// The name of the policy with its partition; empty for a form without names.
        package var name: String
        /// The requests that a window allows; nil if the response does not tell.
        package var quota: Double?
        /// The requests that are left.
        package var remaining: Double
        /// The seconds until more are allowed.
        package var seconds: Double
        /// The length of the window in seconds; nil if the response does not tell.
        package var window: Double?
    }

    /// The usable limits. Most responses have none.
    package private(set) var limits: [Limit] = []
    /// A sentence for each value that is ignored.
    package private(set) var faults: [String] = []

    /// The longest time that is believed: a year.
    private static let longest = 365.0 * 86_400

    /// Parses the fields of a response.
    ///
    /// - Parameter now: the time of the response, if it has no `Date`.
    package init(_ head: ResponseHead, now: Date) {
        guard head.fields.contains(where: { Self.isLimitField($0.name) }) else { return }
        readDraft(head)
        let base = head.first("Date").flatMap { HTTPDate.parse($0, now: now) } ?? now
        for prefix in ["RateLimit-", "X-RateLimit-"] where limits.isEmpty { readTriple(prefix, head, base) }
    }

    /// True for the name of one of these fields.
    package static func contains(_ name: String) -> Bool {
        let name = name.lowercased()
        return name.hasPrefix("ratelimit") || name.hasPrefix("x-ratelimit-")
    }

    private static func isLimitField(_ name: String) -> Bool {
        switch name.utf8.count {
        case 9: name.caseInsensitiveEquals("RateLimit")
        case 19: name.caseInsensitiveEquals("RateLimit-Remaining")
        case 21: name.caseInsensitiveEquals("X-RateLimit-Remaining")
        default: false
        }
    }

    // MARK: The draft

    private mutating func readDraft(_ head: ResponseHead) {
        guard let text = head["RateLimit"] else { return }
        if let members = StructuredField.dictionary(text), members["remaining"] != nil {
            return add(
                "RateLimit", quota: members["limit"]?.value.number, remaining: members["remaining"]?.value.number,
                seconds: members["reset"]?.value.number)
        }
        guard let members = StructuredField.list(text) else { return ignore("RateLimit") }
        let policies = head["RateLimit-Policy"].map { text -> [StructuredField.Item] in
            // Hugging Face's form is `"fixed window";"api";q=500;w=300`.
            let text = text.replacingOccurrences(of: "\"fixed window\";\"", with: "\"")
            if let policies = StructuredField.list(text) { return policies }
            ignore("RateLimit-Policy")
            return []
        }
        for member in members {
            guard let name = Self.name(member.value) else {
                ignore("RateLimit")
                continue
            }
            let policy = policies?.first { Self.name($0.value) == name }
            var whole = name
            if case .bytes(let key)? = member.parameters["pk"] { whole += " \(Digester.hex(key))" }
            let window = policy?.parameters["w"]?.number
            add(
                "RateLimit", name: whole, quota: policy?.parameters["q"]?.number,
                remaining: member.parameters["r"]?.number,
                // Without a time, the window is the longest that it may be.
                seconds: member.parameters["t"].map(\.number) ?? window, window: window)
        }
    }

    private static func name(_ value: StructuredField.Value) -> String? {
        switch value {
        case .text(let name), .token(let name): name
        case .number, .bytes, .other: nil
        }
    }

    // MARK: Three fields

    private mutating func readTriple(_ prefix: String, _ head: ResponseHead, _ base: Date) {
        guard let remaining = head[prefix + "Remaining"] else { return }
        let limit = head[prefix + "Limit"]
        let window = limit?.range(of: "w=").flatMap { found in
            limit.flatMap { Self.number($0[found.upperBound...].prefix { $0.isASCII && $0.isNumber }) }
        }
        var seconds = head[prefix + "Reset"].map { Self.number($0[...]) } ?? window
        if prefix.hasPrefix("X-"), let reset = seconds, reset > Self.longest {
            seconds = reset - base.timeIntervalSince1970
            // The clocks of two machines differ by a little.
            if let left = seconds, left < 0, left > -5 { seconds = 0 }
        }
        add(
            prefix + "*", quota: limit.flatMap { Self.number($0.prefix { $0 != "," && $0 != ";" }) },
            remaining: Self.number(remaining[...]), seconds: seconds, window: window)
    }

    /// Digits with an optional fraction, and a sign, so that it can be named.
    private static func number(_ text: Substring) -> Double? {
        let text = text.trimmingCharacters(in: .whitespaces)
        guard !text.isEmpty, text.utf8.allSatisfy({ $0.isASCIIDigit || "-.".utf8.contains($0) }) else { return nil }
        return Double(text)
    }

    // MARK: Limits

    private mutating func add(
        _ field: String, name: String = "", quota: Double?, remaining: Double?, seconds: Double?, window: Double? = nil
    ) {
        let shown = name.isEmpty ? field : "\(field) \"\(name)\""
        guard let remaining, let seconds else {
            return faults.append("\(shown) does not say how many requests are left or for how long: ignored")
        }
        let values = [remaining, seconds, quota ?? 0, window ?? 0]
        guard values.allSatisfy({ $0 >= 0 && $0.isFinite }), max(seconds, window ?? 0) <= Self.longest else {
            return faults.append("\(shown) has an impossible value: ignored")
        }
        limits.append(
            Limit(
                name: name, quota: quota.flatMap { $0 > 0 ? $0 : nil }, remaining: remaining, seconds: seconds,
                window: window))
    }

    private mutating func ignore(_ field: String) {
        faults.append("\(field) is malformed: ignored")
    }

    /// The seconds until a server answers again that has no request left; nil if it does not tell.
    package var exhausted: Double? { limits.filter { $0.remaining < 1 }.map(\.seconds).max() }
}
