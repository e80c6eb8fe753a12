import FKMiddleware
import Foundation

/// A bucket with a key or a folder, as people write it: `s3://BUCKET/KEY`, `gs://BUCKET/KEY` or
/// `az://ACCOUNT/CONTAINER/KEY`.
struct BucketPlace: Sendable, Hashable {
    /// The store, by its scheme.
    enum Store: String, Sendable, Hashable, CaseIterable {
        case s3
        case gs
        case az

        /// The form that people write.
        var form: String {
            switch self {
            case .s3: "s3://BUCKET/KEY"
            case .gs: "gs://BUCKET/KEY"
            case .az: "az://ACCOUNT/CONTAINER/KEY"
            }
        }
    }

    let store: Store
    /// The account, of Azure alone.
    let account: String
    /// The bucket or container.
    let bucket: String
    /// The key or the beginning of keys, as written; empty for the whole bucket.
    let key: String
    /// S3's version of the object; nil for the present one.
    let versionID: String?

    /// True if a text has the scheme of a store.
    static func isOne(_ text: String) -> Bool {
        Store.allCases.contains { text.lowercased().hasPrefix("\($0.rawValue)://") }
    }

    /// Parses a place. Keys are taken as they are, without percent-decoding; `?versionId=ID` may follow a key of S3.
    ///
    /// - Throws: `.invalidArgument` for another text.
    init(parsing text: String) throws(DownloadError) {
        let shown = String(text.prefix(200)).masked.visible
        guard let colon = text.range(of: "://"), let store = Store(rawValue: text[..<colon.lowerBound].lowercased())
        else { throw DownloadError(.invalidArgument, "'\(shown)' is no bucket: write s3://BUCKET/KEY.") }
        self.store = store
        func bad(_ reason: String) -> DownloadError {
            DownloadError(.invalidArgument, "'\(shown)' \(reason): write \(store.form).")
        }
        var parts = text[colon.upperBound...].split(
            separator: "/", maxSplits: store == .az ? 2 : 1, omittingEmptySubsequences: false
        ).map(String.init)
        account = store == .az ? parts.removeFirst() : ""
        if store == .az, !Self.isAccount(account) { throw bad("names no storage account") }
        bucket = parts.first ?? ""
        guard Self.isBucket(bucket) else { throw bad(store == .az ? "names no container" : "names no bucket") }
        var key = parts.count > 1 ? parts[1] : ""
        var version: String?
        if store == .s3, let mark = key.range(of: "?versionId=", options: .backwards) {
            version = String(key[mark.upperBound...])
            key = String(key[..<mark.lowerBound])
            guard version?.isEmpty == false, !key.isEmpty else { throw bad("has no key or no version") }
        }
        guard key.utf8.count <= 1_024, (version ?? "").utf8.count <= 1_024,
            !(key + (version ?? "")).utf8.contains(where: { $0 < 0x20 || $0 == 0x7f })
        else { throw bad("has a key that is too long, or that has control characters") }
        if let part = Self.dotPart(of: key) {
            throw DownloadError(
                .invalidArgument, "'\(shown)' has a key with the part '\(part)', which no address can have.")
        }
        self.key = key
        versionID = version
    }

    /// A part `.` or `..` of a key; nil without one. An address with it names another object (RFC 3986 section 5.2.4).
    static func dotPart(of key: String) -> String? {
        let parts = key.utf8.split(separator: UInt8(ascii: "/"))
        return [".", ".."].first { part in parts.contains { $0.elementsEqual(part.utf8) } }
    }

    /// The beginning of the keys below this folder: with a slash at its end, unless it is the whole bucket.
    var prefix: String { key.isEmpty || key.hasSuffix("/") ? key : key + "/" }

    /// The form that `init(parsing:)` reads.
    var description: String {
        "\(store.rawValue)://" + (store == .az ? "\(account)/" : "") + bucket + (key.isEmpty ? "" : "/\(key)")
            + (versionID.map { "?versionId=\($0)" } ?? "")
    }

    /// The names of AWS, those of older buckets and of other servers: 1 to 255 letters, digits, dots, hyphens and underscores.
    private static func isBucket(_ text: String) -> Bool {
        (1...255).contains(text.utf8.count) && text != "." && text != ".."
            && text.utf8.allSatisfy { $0.isASCIILetter || $0.isASCIIDigit || "-._$".utf8.contains($0) }
    }

    private static func isAccount(_ text: String) -> Bool {
        (1...63).contains(text.utf8.count) && text.utf8.allSatisfy { $0.isASCIILetter || $0.isASCIIDigit || $0 == 0x2d }
    }
}

/// The addresses of a bucket at its server.
struct BucketServer: Sendable, Hashable {
    let store: BucketPlace.Store
    /// The URL of the bucket, without a final slash.
    let base: String
    /// The region of the signature; nil if nothing is signed.
    let region: String?

    /// Finds the server of a bucket.
    ///
    /// | store | server |
    /// | --- | --- |
    /// | S3 | `AWS_ENDPOINT_URL_S3` or `AWS_ENDPOINT_URL`, with the bucket in the path; else Amazon's in the region, with the bucket in the host, or in the path if its name has a dot or is no host's |
    /// | Google | `STORAGE_EMULATOR_HOST`, else `storage.googleapis.com` |
    /// | Azure | `AZURE_STORAGE_SERVICE_ENDPOINT`, else `ACCOUNT.blob.core.windows.net` |
    ///
    /// - Parameter region: that of the bucket; nil for `us-east-1`.
    /// - Throws: the error of an endpoint that is no URL, with the name of its variable.
    init(
        _ place: BucketPlace, region: String? = nil, in environment: [String: String]
    ) throws(DownloadError) {
        store = place.store
        self.region = store == .s3 ? region ?? "us-east-1" : nil
        func variable(_ name: String) -> (String, String)? { Self.variable(name, in: environment) }
        switch store {
        case .s3:
            if let endpoint = try Self.endpointOfS3(in: environment) {
                base = "\(endpoint)/\(place.bucket)"
            } else if Self.isHostLabel(place.bucket) {
                base = "https://\(place.bucket).s3.\(self.region ?? "us-east-1").\(Self.domain(self.region))"
            } else {
                base = "https://s3.\(self.region ?? "us-east-1").\(Self.domain(self.region))/\(place.bucket)"
            }
        case .gs:
            let server = try variable("STORAGE_EMULATOR_HOST").map(Self.endpoint) ?? "https://storage.googleapis.com"
            base = "\(server)/\(place.bucket)"
        case .az:
            let server =
                try variable("AZURE_STORAGE_SERVICE_ENDPOINT").map(Self.endpoint)
                ?? "https://\(place.account).blob.core.windows.net"
            base = "\(server)/\(place.bucket)"
        }
    }

    /// The server of S3 that the environment names; nil for Amazon's.
    ///
    /// - Throws: the error of an endpoint that is no URL, with the name of its variable.
    static func endpointOfS3(in environment: [String: String]) throws(DownloadError) -> String? {
        guard
            let named = variable("AWS_ENDPOINT_URL_S3", in: environment)
                ?? variable("AWS_ENDPOINT_URL", in: environment)
        else { return nil }
        return try endpoint(named)
    }

    private static func variable(_ name: String, in environment: [String: String]) -> (String, String)? {
        environment[name].flatMap { $0.isEmpty ? nil : (name, $0) }
    }

    /// The number of objects that are asked for with each page.
    static let pageSize = 1_000

    /// The URL of a page of the keys that begin with a text.
    ///
    /// - Parameters:
    ///   - token: the text of the page before; nil for the first page.
    ///   - size: the most objects of the page.
    func list(_ prefix: String, after token: String?, size: Int = pageSize) -> String {
        var query: [(String, String)]
        switch store {
        case .s3, .gs:
            query = [("list-type", "2"), ("encoding-type", "url"), ("max-keys", "\(size)"), ("prefix", prefix)]
            if let token { query.append(("continuation-token", token)) }
        case .az:
            query = [("restype", "container"), ("comp", "list"), ("maxresults", "\(size)"), ("prefix", prefix)]
            if let token { query.append(("marker", token)) }
        }
        let text = query.map { "\($0)=\(BaseURL.encoded($1).replacing("/", with: "%2F"))" }.joined(separator: "&")
        return "\(base)\(store == .az ? "" : "/")?\(text)"
    }

    /// The URL of an object.
    func object(_ key: String, versionID: String? = nil) -> String {
        "\(base)/\(BaseURL.encoded(key))"
            + (versionID.map { "?versionId=\(BaseURL.encoded($0).replacing("/", with: "%2F"))" } ?? "")
    }

    /// True for a name that may be a label of a host: no certificate of Amazon's covers a name with a dot.
    private static func isHostLabel(_ bucket: String) -> Bool {
        (3...63).contains(bucket.utf8.count)
            && bucket.utf8.allSatisfy { (0x61...0x7a).contains($0) || $0.isASCIIDigit || $0 == 0x2d }
            && bucket.utf8.first != 0x2d && bucket.utf8.last != 0x2d
    }

    private static func domain(_ region: String?) -> String {
        region?.hasPrefix("cn-") == true ? "amazonaws.com.cn" : "amazonaws.com"
    }

    /// True for the name of a region, which becomes a part of a host.
    static func isRegion(_ text: String) -> Bool {
        (1...63).contains(text.utf8.count)
            && text.utf8.allSatisfy { (0x61...0x7a).contains($0) || $0.isASCIIDigit || $0 == 0x2d }
    }

    private static func endpoint(_ named: (name: String, value: String)) throws(DownloadError) -> String {
        // Google's libraries take a host without a scheme.
        let text = named.value.contains("://") ? named.value : "http://\(named.value)"
        return try SourceEndpoint.url(text, of: named.name)
    }
}

/// What a store says about a request that it refuses.
struct BucketRefusal: Sendable, Hashable {
    /// The code, such as `NoSuchBucket`; empty without one.
    var code = ""
    /// The message; empty without one.
    var message = ""
    /// The region that the bucket is in, of S3 alone.
    var region: String?

    /// Reads the body of an error; an answer without one says nothing.
    init(_ bytes: [UInt8]) {
        do {
            var draft = (code: "", message: "", region: String?.none)
            try XMLElements.read(bytes, root: { $0 == "Error" }) { element in
                guard element.path.count == 1 else { return }
                switch element.path[0] {
                case "Code": draft.code = String(element.text.prefix(100))
                case "Message": draft.message = String(element.text.prefix(500))
                case "Region": draft.region = BucketServer.isRegion(element.text) ? element.text : nil
                default: break
                }
            }
            (code, message, region) = draft
        } catch {}
    }
}

extension URLOrigin {
    /// True for a server of Amazon's storage.
    package var isAmazon: Bool {
        scheme == "https" && [".amazonaws.com", ".amazonaws.com.cn"].contains { host.hasSuffix($0) }
    }
}
