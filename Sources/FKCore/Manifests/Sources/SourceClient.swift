import FKMiddleware
import FKTransport
import Foundation

/// The limits of a listing. A place that exceeds one is refused.
public struct SourceLimits: Sendable, Hashable {
    /// The maximum size of an answer in bytes. The default is 64 MiB.
    public var answerBytes = 64 << 20
    /// The maximum sum of all answers in bytes. The default is 4 GiB.
    public var allBytes = 4 << 30
    /// The maximum number of requests, redirects not counted. The default is 1,000,000.
    public var requests = 1_000_000
    /// The maximum number of pages. The default is 1,000,000.
    public var pages = 1_000_000
    /// The maximum number of files. The default is 10,000,000.
    public var files = 10_000_000

    /// The default limits.
    public init() {}
}

/// A request of a source.
public struct SourceRequest: Sendable {
    /// The URL, as `https://host/path`.
    public var url: String
    /// The method. The default is GET. A request is tried again after a transient failure, so it must be safe to repeat.
    public var method = "GET"
    /// Header fields, which may go to any server. A field whose name looks like a secret's is not sent on to another origin by a
    /// redirect. The default is none.
    public var headers: [HeaderField] = []
    /// Header fields that one origin alone may receive. The default is none.
    public var secrets: [SourceSecret] = []
    /// The body; nil, the default, for none.
    public var body: [UInt8]?
    /// The status codes whose answers are returned and not thrown. The default is 200 and 203. The body of other ones than 200, 203
    /// and 207 is empty.
    public var statuses: Set<Int> = [200, 203]
    /// True sends the request once, without further attempts, and waits at most 10 seconds for it. The default is false.
    public var isTriedOnce = false
    /// True also sends the secrets of the owner's options, such as a login, if the URL has the origin of the place. The default is true.
    public var usesLogin = true

    /// True also returns the bodies of other accepted status codes, at most 64 KiB. The default is false.
    package var readsErrors = false
    /// Decides by the head whether the body is fetched; it is empty otherwise. The default is always.
    package var isWanted: @Sendable (ResponseHead) -> Bool = { _ in true }
    /// The provider of `AWSSignature` for this request, with the owner's credentials, if its URL has the origin of the place or `address`;
    /// nil, the default, leaves the signature to the owner's options.
    package var signature: (provider: String, address: String)?

    /// Creates a request.
    public init(_ url: String) { self.url = url }
}

/// A header field that one origin may receive, such as the token of a service.
public struct SourceSecret: Sendable, Hashable {
    /// The field.
    public var field: HeaderField
    /// A URL of the origin.
    public var origin: String

    /// Creates a secret.
    public init(_ field: HeaderField, for origin: String) {
        self.field = field
        self.origin = origin
    }

    /// A token without line ends; nil if a header field cannot hold it.
    static func token(_ text: String) -> String? {
        let token = text.trimmingCharacters(in: .whitespacesAndNewlines)
        return token.isEmpty || !token.utf8.allSatisfy({ $0 > 0x20 && $0 < 0x7f }) ? nil : token
    }
}

/// An answer to a source's request.
public struct SourceAnswer: Sendable {
    /// The head. Its URL is that after redirects.
    public var head: ResponseHead
    /// The body.
    public var bytes: [UInt8]
}

/// Sends the requests of a source, and has its limits.
///
/// Requests follow the policies of hosts, and are repeated after transient failures as those of files. They share the limits of the
/// listing. Another server than that of the place is not asked at a private address, unless the place has one itself.
public struct SourceClient: Sendable {
    /// The place.
    public let place: SourcePlace
    /// The files to take, and the depth. The listing applies the patterns itself; a source may use them to ask less.
    public let choice: SourceChoice
    /// The environment, which names endpoints and credentials.
    public let environment: [String: String]
    /// The limits.
    public let limits: SourceLimits

    private let options: TaskOptions
    /// The proxy, the trust and the route of the requests.
    var connection: TaskOptions { options.connection }
    /// Sends the requests. A source uses `get`.
    let transport: any Transport
    /// The answers of the last listing; nil for none.
    let memory: ListedPlace.Memory?
    private let counts = Locked(Counts())

    private struct Counts {
        var requests = 0
        var bytes = 0
    }

    package init(
        _ place: SourcePlace, _ choice: SourceChoice, _ options: TaskOptions, _ environment: [String: String],
        limits: SourceLimits = SourceLimits(), memory: ListedPlace.Memory? = nil, over transport: any Transport
    ) {
        self.memory = memory
        self.place = place
        self.choice = choice
        self.environment = environment
        self.limits = limits
        var options = options
        options.checksum = nil
        options.secretOrigin = place.address ?? ""
        self.options = options
        self.transport = transport
    }

    /// Sends a GET.
    ///
    /// - Parameter accept: the `Accept` field; nil, the default, leaves it to the transport.
    /// - Throws: same as `get(_:)`.
    public func get(_ url: String, accept: String? = nil) async throws(DownloadError) -> SourceAnswer {
        var request = SourceRequest(url)
        if let accept { request.headers = [HeaderField("Accept", accept)] }
        return try await get(request)
    }

    /// Sends a request and waits for its answer.
    ///
    /// - Throws: `.httpStatus` for another status than the request takes, with the status and whether a login may help; `.tooLarge`
    ///   for a longer answer; `.protocolViolation` beyond a limit of the listing; `.invalidURL`; the errors of the connection;
    ///   `.cancelled`.
    public func get(_ request: SourceRequest) async throws(DownloadError) -> SourceAnswer {
        let url = try request.url.normalizedURL()
        let origin = URLOrigin(url)
        let home = place.address.flatMap { URLOrigin($0) }
        guard mayAsk(origin) else {
            throw DownloadError(
                .redirect, "The server was not asked: it is at a loopback or private address, and the place is not.",
                url: url.masked)
        }
        try count(requests: 1, bytes: 0)
        var document = DocumentRequest(url: url, options: options)
        document.method = request.method
        document.body = request.body.map { Data($0) }
        document.statuses = request.statuses
        document.limit = limits.answerBytes
        document.allowsPrivateRedirect = false
        if request.isTriedOnce {
            document.options.maxAttempts = 1
            document.options.timeoutSeconds = min(document.options.timeoutSeconds ?? 10, 10)
        }
        if request.usesLogin {
            document.origin = home
            document.headers = options.headers(for: url, of: url)
            document.secretHeaders = Set((options.secretHeaders ?? []).map { $0.lowercased() })
        } else {
            document.options.awsSignature = nil
            document.options.netrc = nil
            document.options.cookiePath = nil
            document.options.loginHost = nil
        }
        let secrets = request.secrets.filter { origin != nil && URLOrigin($0.origin) == origin }.map(\.field)
        let own = request.headers + secrets
        // What the source says replaces what the owner says for all requests.
        document.readsErrors = request.readsErrors
        document.isWanted = request.isWanted
        if let signature = request.signature, URLOrigin(signature.address) == origin {
            document.options.awsSignature = signature.provider
            document.keys = try AWSCredentials.usual(environment: environment)
            document.origin = origin
            // Secrets of the owner's other options are for the place alone.
            if origin != home { (document.options.netrc, document.options.cookiePath) = (nil, nil) }
        }
        document.headers.removeAll { given in own.contains { $0.name.caseInsensitiveEquals(given.name) } }
        document.headers += own
        document.secretHeaders.formUnion(secrets.map { $0.name.lowercased() })
        let isKept = request.method == "GET" && request.signature == nil
        let known = isKept ? memory?.answer(to: request) : nil
        let plain = document
        if let known {
            document.headers += ListedPlace.Memory.conditions(known.head)
            document.statuses.insert(304)
        }
        var fetched = try await document.fetch(over: transport)
        let isConfirmed = known != nil && fetched.head.status == 304 && fetched.head.url == known?.head.url
        // A 304 of another address confirms nothing.
        if known != nil, fetched.head.status == 304, !isConfirmed { fetched = try await plain.fetch(over: transport) }
        var answer = SourceAnswer(head: fetched.head, bytes: fetched.bytes ?? [])
        if isConfirmed, let known { answer = known }
        try count(requests: 0, bytes: answer.bytes.count)
        if isKept, isConfirmed || fetched.bytes != nil { memory?.keep(answer, to: request, isConfirmed: isConfirmed) }
        return answer
    }

    /// The value of `Authorization` in the owner's options, for a URL of the place's own origin; nil without one.
    func login(for url: String) -> String? {
        guard let origin = URLOrigin(url), origin == place.address.flatMap({ URLOrigin($0) }) else { return nil }
        return options.headers?.first { $0.name.caseInsensitiveEquals("Authorization") }?.value
    }

    /// True if everything in a folder is left out by a pattern of `choice.exclude`, so that the folder need not be listed.
    ///
    /// - Parameter name: the path of the folder below the place, without a final slash.
    public func leavesOutFolder(_ name: String) -> Bool {
        choice.exclude.contains { HubPattern($0).matchesAll(below: name) }
    }

    /// The path of a URL below another one, percent-decoded: the name of a file or folder of a place.
    ///
    /// - Parameters:
    ///   - url: an absolute URL. Its query and fragment are ignored.
    ///   - base: the URL of the place's folder, with a final slash.
    /// - Returns: the path, with a final slash if the URL has one; empty for the folder itself; nil for a URL of another origin, outside of
    ///   the folder, or with a path that could be read in two ways: with `.` or `..`, also encoded ones, with an encoded slash,
    ///   or with bytes that are no UTF-8.
    public static func name(of url: String, below base: String) -> String? { SourceScope(base)?.name(of: url) }

    /// False for a server at a loopback or private address, unless the place has one itself.
    func mayAsk(_ target: URLOrigin?) -> Bool {
        let home = (place.first ?? place.address).flatMap { URLOrigin($0) }
        guard let target, target != home, AddressClass.isPrivate(host: target.host) == true else { return true }
        return home.map { AddressClass.isPrivate(host: $0.host) == true } ?? false
    }

    private func count(requests: Int, bytes: Int) throws(DownloadError) {
        let fault: String? = counts.withLock { counts in
            counts.requests += requests
            counts.bytes += bytes
            if counts.requests > limits.requests { return "it took more than \(limits.requests) requests" }
            return counts.bytes > limits.allBytes ? "its answers have more than \(limits.allBytes >> 20) MiB" : nil
        }
        guard let fault else { return }
        throw DownloadError(.protocolViolation, "The list of files does not end: \(fault).", url: place.title.masked)
    }
}

/// The URLs of a folder: one origin, and the paths below that of the folder.
struct SourceScope: Sendable, Hashable {
    private let origin: URLOrigin
    /// The decoded parts of the folder's path.
    private let folder: [[UInt8]]
    /// The URL of the folder, with a final slash.
    private let root: String

    /// The scope of a folder's URL; nil for a URL without a host, or whose path could be read in two ways.
    init?(_ base: String) {
        let parts = URLParts(base)
        guard let origin = URLOrigin(parts), let folder = Self.decoded(parts.path) else { return nil }
        self.origin = origin
        self.folder = folder.last == [] ? folder.dropLast() : folder
        let end = base.firstIndex { $0 == "?" || $0 == "#" } ?? base.endIndex
        root = base[..<end].hasSuffix("/") ? String(base[..<end]) : base[..<end] + "/"
    }

    /// The last part of the folder's path; nil without one, or if it is no UTF-8.
    var lastPart: String? { folder.last.flatMap { $0.isEmpty ? nil : String(validating: $0, as: UTF8.self) } }
    var host: String { origin.host }

    /// True if the folder lies in that of the URL, on the same origin.
    func isParent(_ url: String) -> Bool {
        let parts = URLParts(url)
        guard URLOrigin(parts) == origin, var path = Self.decoded(parts.path) else { return false }
        if path.last == [] { path.removeLast() }
        return path.count < folder.count && folder.starts(with: path)
    }

    /// True for a URL of the origin whose path begins with that of the folder, and could be read in two ways.
    func isAmbiguous(_ url: String) -> Bool {
        let parts = URLParts(url)
        guard URLOrigin(parts) == origin else { return false }
        return Self.parts(parts.path).starts(with: folder)
    }

    /// Same as `SourceClient.name(of:below:)`.
    func name(of url: String) -> String? {
        if let name = plainName(of: url) { return name }
        let parts = URLParts(url)
        guard URLOrigin(parts) == origin, let path = Self.decoded(parts.path), path.starts(with: folder) else {
            return nil
        }
        let rest = path[folder.count...]
        // An empty part inside the path is no name.
        guard !rest.dropLast().contains([]) else { return nil }
        return String(validating: Array(rest.joined(separator: [UInt8(ascii: "/")])), as: UTF8.self)
    }

    /// Same as `name(of:)`, without decoding: for a URL of the folder's text and unreserved characters alone (RFC 3986 section 2.3).
    /// nil for any other one. Most URLs of a listing are such.
    private func plainName(of url: String) -> String? {
        let bytes = url.utf8
        guard bytes.count > root.utf8.count, bytes.starts(with: root.utf8) else { return nil }
        let name = bytes.dropFirst(root.utf8.count)
        var last = UInt8(ascii: "/")
        for byte in name {
            // Neither an empty part nor one that may be `.` or `..`.
            guard byte.isUnreserved || byte == UInt8(ascii: "/"),
                last != UInt8(ascii: "/") || byte != last && byte != UInt8(ascii: ".")
            else { return nil }
            last = byte
        }
        return String(name)
    }

    /// The decoded parts behind the first slash; nil if one of them is `.` or `..`, or has a slash or a zero byte.
    private static func decoded(_ path: Substring) -> [[UInt8]]? {
        let parts = parts(path)
        let isPlain = parts.allSatisfy {
            $0 != [0x2e] && $0 != [0x2e, 0x2e] && !$0.contains(UInt8(ascii: "/")) && !$0.contains(0)
        }
        return isPlain ? parts : nil
    }

    /// The parts behind the first slash, each decoded.
    private static func parts(_ path: Substring) -> [[UInt8]] {
        var bytes = Array(path.utf8)[...]
        if bytes.first == UInt8(ascii: "/") { bytes = bytes.dropFirst() }
        return bytes.split(separator: UInt8(ascii: "/"), omittingEmptySubsequences: false).map(\.percentDecoded)
    }
}
