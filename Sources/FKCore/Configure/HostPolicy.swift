import FKMiddleware

/// A number of requests in a time, such as `20/m`.
public struct RequestRate: Codable, Sendable, Hashable {
    /// The time.
    package enum Unit: String, Codable, Sendable, Hashable, CaseIterable {
        case second = "s"
        case minute = "m"
        case hour = "h"

        fileprivate var seconds: Double {
            switch self {
            case .second: 1
            case .minute: 60
            case .hour: 3_600
            }
        }
    }

    /// The number of requests, 1 to 1,000,000.
    package var count: Int
    package var unit: Unit

    package init(_ count: Int, per unit: Unit) {
        self.count = count
        self.unit = unit
    }

    /// So many requests a second, 1 to 1,000,000. `Downloader` throws for another number, as for all rates.
    public static func perSecond(_ count: Int) -> RequestRate { RequestRate(count, per: .second) }
    /// So many requests a minute.
    public static func perMinute(_ count: Int) -> RequestRate { RequestRate(count, per: .minute) }
    /// So many requests an hour.
    public static func perHour(_ count: Int) -> RequestRate { RequestRate(count, per: .hour) }

    /// Parses `3/s`, `20/m` or `1000/h`; nil for any other text, and for a number outside its range.
    package init?(_ text: String) {
        let parts = text.split(separator: "/", omittingEmptySubsequences: false)
        guard parts.count == 2, let unit = Unit(rawValue: String(parts[1])), let count = Int(parts[0]),
            Self.range.contains(count), parts[0].utf8.allSatisfy({ (0x30...0x39).contains($0) })
        else { return nil }
        self.init(count, per: unit)
    }

    static let range = 1...1_000_000

    /// `20/m`
    package var text: String { "\(count)/\(unit.rawValue)" }

    /// The nanoseconds from one request to the next. A twentieth, at most 50 ms, is added, because requests do not
    /// take the same time to reach the server.
    package var interval: Int64 {
        let seconds = unit.seconds / Double(max(1, count))
        return Int64((seconds + min(seconds / 20, 0.05)) * 1e9)
    }

    /// `20 requests a minute`
    package var words: String { "\(count.plural("request")) \(unit == .hour ? "an" : "a") \(unit)" }
}

/// The limits of requests to a host, for all tasks and processes of a work path together (`Configure.hosts`). Requests of a
/// `HubClient` are not counted.
///
/// ```swift
/// configure.hosts = [
///     HostPolicy("export.arxiv.org", connections: 1, requestRate: .perMinute(20)),
///     HostPolicy("*.wikimedia.org", connections: 2, contact: "https://example.org/bot"),
/// ]
/// ```
///
/// For each field, the policy with the nearest pattern that sets it applies: the host itself, then the longest `*.`.
public struct HostPolicy: Codable, Sendable, Hashable {
    /// A host without a port (`a.example`), or its subdomains (`*.a.example`). Each host has the limits for itself.
    public var pattern: String
    /// The maximum number of connections, 1 to 256; nil sets none.
    public var connections: Int?
    /// The maximum rate of requests, spread evenly; nil sets none. Ranges, mirrors, retries and `Control.refresh` count, and so
    /// do redirects once they have been followed.
    public var requestRate: RequestRate?
    /// The maximum number of bytes per second over the files of the host, at least 1; nil sets none.
    public var rateLimit: Int64?
    /// A mail address or URL that is appended to the `User-Agent`; nil sets none.
    public var contact: String?
    /// An http or https URL that requests to the host go to in place of the host's own address; nil sets none. Ids, names and
    /// parts stay those of the host. Bytes of both are combined only if something proves that they belong to one file. The mirror gets
    /// no secret: no login, no secret header field and no secret item of a query. Redirects to the host are not changed.
    public var mirror: String?
    /// Status codes whose answers are retried as a 503 is, 400 to 599; nil sets none.
    public var retryStatuses: [Int]?

    /// The host, as `HOST` or `HOST:PORT`, at which redirects of this host may authenticate, as `TaskOptions.loginHost`; nil sets none.
    public var loginHost: String?

    /// Creates a policy. `Downloader.init` refuses values outside their ranges.
    public init(
        _ pattern: String, connections: Int? = nil, requestRate: RequestRate? = nil, rateLimit: Int64? = nil,
        contact: String? = nil, mirror: String? = nil, retryStatuses: [Int]? = nil, loginHost: String? = nil
    ) {
        self.pattern = pattern
        self.connections = connections
        self.requestRate = requestRate
        self.rateLimit = rateLimit
        self.contact = contact
        self.mirror = mirror
        self.retryStatuses = retryStatuses
        self.loginHost = loginHost
    }

    /// A description of the first value outside its range; nil if all are valid.
    package var fault: String? {
        if pattern.isEmpty { return "the pattern of a host is empty: write a host or *.host" }
        if normalPattern == nil { return "the pattern \(pattern.visible) is no host and no *.host" }
        if let connections, !(1...256).contains(connections) { return "connections to a host are from 1 to 256" }
        if let requestRate, !RequestRate.range.contains(requestRate.count) {
            return "requests to a host are from 1 to 1000000 in a time"
        }
        if let rateLimit, rateLimit < 1 { return "the rate limit of a host is at least 1" }
        if let contact, !Self.isContact(contact) {
            return "a contact is a mail address or a URL, of at most 200 ASCII characters without blanks and brackets"
        }
        if let mirror, Self.mirrorBase(mirror) == nil {
            return "a mirror is an http or https URL without a login, a query and a fragment"
        }
        if let retryStatuses, !retryStatuses.allSatisfy(Self.retryableRange.contains) {
            return "statuses that are retried are from 400 to 599"
        }
        return loginHost.flatMap { LoginHost.fault(in: $0) }
    }

    /// The statuses that may be retried.
    package static let retryableRange = 400...599

    /// The normal form of a mirror's address, without a slash at its end; nil for another text.
    package static func mirrorBase(_ text: String) -> String? {
        guard let url = try? text.normalizedURL() else { return nil }
        let parts = URLParts(url)
        guard parts.scheme == "http" || parts.scheme == "https", parts.userinfo == nil, parts.query == nil,
            parts.fragment == nil, !parts.hostPort.isEmpty
        else { return nil }
        return url.utf8.last == UInt8(ascii: "/") ? String(url.dropLast()) : url
    }

    /// True for a text that may stand in a comment of the `User-Agent` (RFC 9110 section 5.6.5).
    package static func isContact(_ text: String) -> Bool {
        (1...200).contains(text.utf8.count)
            && text.utf8.allSatisfy { (0x21...0x7e).contains($0) && !"()\\".utf8.contains($0) }
            && (text.contains("@") || text.contains("://"))
    }

    /// The pattern in lower case and IDNA; nil if it is none.
    package var normalPattern: String? {
        let isWild = pattern.hasPrefix("*.")
        let host = isWild ? String(pattern.dropFirst(2)) : pattern
        guard !host.isEmpty, !host.utf8.contains(where: { "*/@?#:".utf8.contains($0) }) || host.hasPrefix("["),
            let url = try? "http://\(host)/".normalizedURL()
        else { return nil }
        let name = url.site.shownSite
        return name.isEmpty || name.hasSuffix("]") && isWild ? nil : (isWild ? "*." : "") + name
    }

    /// True if it sets no field.
    package var isEmpty: Bool {
        connections == nil && requestRate == nil && rateLimit == nil && contact == nil && mirror == nil
            && retryStatuses == nil && loginHost == nil
    }

    /// Sets the fields that the other policy has.
    package mutating func set(_ other: Self) {
        connections = other.connections ?? connections
        requestRate = other.requestRate ?? requestRate
        rateLimit = other.rateLimit ?? rateLimit
        contact = other.contact ?? contact
        mirror = other.mirror ?? mirror
        retryStatuses = other.retryStatuses ?? retryStatuses
        loginHost = other.loginHost ?? loginHost
    }

    /// One shard's part of the limits.
    package func divided(by count: Int) -> Self {
        var policy = self
        policy.connections = connections.map { max(1, $0 / count) }
        policy.rateLimit = rateLimit.map { max(1, $0 / Int64(count)) }
        return policy
    }
}

/// The policies of a work path, which every engine of it follows. They are a small JSON file, `hosts`, replaced as a whole.
extension HostPolicy {
    private struct File: Codable {
        var format = 1
        var hosts: [HostPolicy]
    }

    /// The policies, in the order of their patterns. A shard has those of the work path that it belongs to.
    ///
    /// - Throws: `.corruptInfo`, `.laterVersion` or `.disk`.
    package static func all(in workPath: WorkPath) throws -> [HostPolicy] {
        let file: File
        let path = workPath.ofShards.hostsPath
        do {
            file = try StoreJSON.decode(File.self, from: try FileIO.contents(of: path, limit: 1 << 20))
        } catch let error as DownloadError where error.code == .notFound {
            return []
        }
        guard file.format == 1 else {
            throw DownloadError(.laterVersion, "\(path) has format \(file.format); this program knows 1.")
        }
        return file.hosts
    }

    /// Changes the policies. No other process changes them meanwhile, so that none is lost. An engine that runs follows them
    /// within a second.
    ///
    /// - Parameter workPath: exists.
    /// - Returns: the value of `change`.
    /// - Throws: the errors of `all` and of `change`; `.workPathBusy` if another process does not end its own change; `.noSpace`
    ///   or `.disk`. The policies are then unchanged.
    package static func change<Value>(
        in workPath: WorkPath, _ change: (inout [HostPolicy]) throws -> Value
    ) throws -> Value {
        try workPath.withSettingsLock {
            var policies = try all(in: workPath)
            let value = try change(&policies)
            try write(policies, in: workPath)
            return value
        }
    }

    /// Replaces the policies.
    package static func write(_ policies: [HostPolicy], in workPath: WorkPath) throws {
        let path = workPath.ofShards.hostsPath
        guard !policies.isEmpty else {
            try FileIO.remove(path)
            return
        }
        let bytes = try StoreJSON.encode(File(hosts: policies.sorted { $0.pattern < $1.pattern }))
        try bytes.withUnsafeBytes {
            try FileIO.replace(path, aside: path + ".new", $0) { try FileIO.synchronize(path + ".new") }
        }
    }
}
