import TestSupport
import Testing

/// Header fields that decide something: whatever they hold, they are understood within their bounds or not at all.
@Suite("Fuzzed headers")
struct FuzzHeaderTests {
    private static let now = Date(timeIntervalSince1970: 1_795_000_000)
    private static let dates = [
        "Sun, 06 Nov 1994 08:49:37 GMT", "Sunday, 06-Nov-94 08:49:37 GMT", "Sun Nov  6 08:49:37 1994",
        "Thu, 29 Feb 2024 23:59:60 GMT", "Wed, 21 Oct 2026 07:28:00 UTC",
    ]

    @Test("Content-Range and Content-Length", arguments: FuzzRun.shards)
    func ranges(shard: Int) async throws {
        let examples = [
            "bytes 0-99/200", "bytes 100-199/*", "bytes */200", "bytes 0-0/1", "items 5-6/7", "9223372036854775807",
            "12, 12",
        ]
        try await FuzzRun("Content-Range", usual: 50_000)(shard: shard, of: FuzzRun.shards.count) { random in
            let value = NastyHeader.like(examples, &random)
            if let range = ContentRange(value) {
                if let span = range.range, span.first < 0 || span.last < span.first || span.end <= 0 || span.count <= 0
                {
                    return "\(value.debugDescription): \(range)"
                }
                if let total = range.total, total < 0 || range.range.map({ $0.last >= total }) ?? false {
                    return "\(value.debugDescription): \(range)"
                }
                if range.range == nil, range.total == nil { return "\(value.debugDescription): nothing" }
            }
            if let length = try? ContentLength.parse([value]), length < 0 {
                return "\(value.debugDescription): \(length)"
            }
            return nil
        }
    }

    @Test("Retry-After and dates", arguments: FuzzRun.shards)
    func times(shard: Int) async throws {
        try await FuzzRun("Retry-After", usual: 50_000)(shard: shard, of: FuzzRun.shards.count) { random in
            let value = NastyHeader.like(Self.dates + ["120", "0", "99999999999999999999"], &random)
            if let date = HTTPDate.parse(value, now: Self.now) {
                let year = 1970 + date.timeIntervalSince1970 / 31_556_952
                guard (-1...10_001).contains(year) else { return "\(value.debugDescription): \(date)" }
            }
            let head = ResponseHead(
                status: 503,
                fields: [.init("Retry-After", value), .init("Date", NastyHeader.like(Self.dates, &random))],
                url: "http://h/")
            let error = RetryRules.error(for: head, now: Self.now)
            if let seconds = error.retryAfterSeconds, !(seconds >= 0 && seconds.isFinite) {
                return "\(value.debugDescription): \(seconds)"
            }
            guard
                case .retry(let after, _, let pause) = RetryRules.decide(
                    error: error, attempt: 1, policy: RetryPolicy(), mirrors: random.below(2), resumed: false,
                    random: 0.5)
            else { return "not retried" }
            return (0...86_400).contains(after) && (0...86_400).contains(pause ?? 0)
                ? nil : "\(value.debugDescription): \(after)"
        }
    }

    @Test("Content-Disposition and URLs as long as they can be", arguments: FuzzRun.shards)
    func long(shard: Int) async throws {
        // Without optimisation the same takes twenty times as long.
        #if DEBUG
            let limit = Duration.seconds(2)
        #else
            let limit = Duration.milliseconds(100)
        #endif
        try await FuzzRun("long headers", usual: 200, limit: limit)(shard: shard, of: FuzzRun.shards.count) { random in
            let piece = NastyText.piece(&random)
            let size = random.pick([2_000, 60_000])
            let long =
                String(repeating: piece.isEmpty ? "x" : piece, count: size / max(1, piece.utf8.count))
                + NastyText.make(&random)
            let head = ResponseHead(
                status: 200, fields: [.init("Content-Disposition", NastyHeader.disposition(long, &random))],
                url: "http://h/")
            let url = "http://h/" + NastyText.percentEncoded(Array(long.utf8.prefix(20_000)), &random)
            return FuzzNameTests.fault(FileNameRules.name(url: url, head: random.oneIn(2) ? head : nil))
        }
    }

    @Test("digests of servers", arguments: FuzzRun.shards)
    func digests(shard: Int) async throws {
        let base64 = "X48E9qOokqqrvdts8nOJRJN3OWDUoyWxBf7kbu9DBPE="
        let examples = [
            "sha-256=:\(base64):", "SHA-256=\(base64),MD5=HUXZLQLMuI/KZ5KDcJPcOA==", "HUXZLQLMuI/KZ5KDcJPcOA==",
            "sha-512=:=:;q=1",
        ]
        try await FuzzRun("digests", usual: 20_000)(shard: shard, of: FuzzRun.shards.count) { random in
            let field = random.pick(["Repr-Digest", "Content-Digest", "Digest", "Content-MD5"])
            let value = NastyHeader.like(examples, &random)
            let head = ResponseHead(status: random.pick([200, 206]), fields: [.init(field, value)], url: "http://h/")
            guard let checksum = ServerDigest.parse(head) else { return nil }
            let isRight = checksum.hex.utf8.count == 2 * checksum.algorithm.byteCount
            return isRight ? nil : "\(value.debugDescription): \(checksum)"
        }
    }

    @Test(
        "Location: nothing but http and https, no control characters, no secrets for strangers",
        arguments: FuzzRun.shards)
    func locations(shard: Int) async throws {
        let examples = [
            "http://b.example/x", "https://a.example/y?z#f", "//c.example/", "/next", "../up", "ftp://a/",
            "file:///etc/passwd", "http://user:pw@a.example/", "http://127.0.0.1:80/", "http://[::1]/", "javascript:x",
            "http://a.example:99999/", "?q", "",
        ]
        try await FuzzRun("Location", usual: 50_000)(shard: shard, of: FuzzRun.shards.count) { random in
            let location = random.oneIn(5) ? NastyText.make(&random) : NastyHeader.like(examples, &random)
            var rules = RedirectRules(url: "https://a.example/start", method: "GET", options: TransportOptions())
            let head = ResponseHead(
                status: random.pick([301, 302, 303, 307, 308]), fields: [.init("Location", location)],
                url: "https://a.example/start")
            let hop = try? rules.follow(head) { location, base in
                URL(string: location, relativeTo: URL(string: base))?.absoluteString
            }
            guard let hop = hop ?? nil else { return nil }
            if hop.url.utf8.contains(where: { $0 < 0x20 || $0 == 0x7f }) {
                return "control characters: \(location.debugDescription)"
            }
            guard hop.url.lowercased().hasPrefix("https://") else { return "followed to \(hop.url)" }
            guard hop.keepsSecrets else { return nil }
            let host = URL(string: hop.url)?.host?.lowercased()
            return host == "a.example" ? nil : "secrets go to \(hop.url)"
        }
    }
}
