import Foundation

/// Keys for AWS Signature Version 4. They are never stored.
public struct AWSCredentials: Sendable, Hashable {
    /// The access key's id.
    public var accessKeyID: String
    /// The secret access key.
    public var secretAccessKey: String
    /// The token of temporary credentials; nil for others.
    public var sessionToken: String?
    /// The region of the requests; nil takes it from the host's name, or `us-east-1`.
    public var region: String?

    /// Creates credentials.
    public init(accessKeyID: String, secretAccessKey: String, sessionToken: String? = nil, region: String? = nil) {
        self.accessKeyID = accessKeyID
        self.secretAccessKey = secretAccessKey
        self.sessionToken = sessionToken
        self.region = region
    }

    /// The credentials of the usual places, the first that has some: the variables `AWS_ACCESS_KEY_ID`, `AWS_SECRET_ACCESS_KEY`
    /// and `AWS_SESSION_TOKEN`; the profile `AWS_PROFILE` (default: `default`) of `AWS_SHARED_CREDENTIALS_FILE` (default:
    /// `~/.aws/credentials`) and of `AWS_CONFIG_FILE` (default: `~/.aws/config`). The region is `AWS_REGION`, `AWS_DEFAULT_REGION`
    /// or the profile's.
    ///
    /// - Parameter environment: the variables; the default is those of the process.
    /// - Throws: `.invalidArgument` if there are none, or if a file cannot be read.
    public static func usual(
        environment: [String: String] = ProcessInfo.processInfo.environment
    ) throws(DownloadError) -> AWSCredentials {
        if let keys = variables(environment) { return keys }
        if var found = AWSCredentialBook.shared.present {
            found.region = try region(environment) ?? found.region
            return found
        }
        let profile = try AWSProfile(in: environment)
        guard let keys = profile.keys else {
            throw DownloadError(
                .invalidArgument,
                "There are no AWS credentials: set AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, or write the profile "
                    + "[\(profile.name.visible)] to \(profile.path.visible).")
        }
        return keys
    }

    /// The credentials of the variables; nil if there are none.
    package static func variables(_ environment: [String: String]) -> AWSCredentials? {
        func variable(_ name: String) -> String? { environment[name].flatMap { $0.isEmpty ? nil : $0 } }
        guard let id = variable("AWS_ACCESS_KEY_ID"), let key = variable("AWS_SECRET_ACCESS_KEY") else { return nil }
        return AWSCredentials(
            accessKeyID: id, secretAccessKey: key, sessionToken: variable("AWS_SESSION_TOKEN"),
            region: variable("AWS_REGION") ?? variable("AWS_DEFAULT_REGION"))
    }

    /// The region of the variables, else that of the profile; nil if neither has one.
    ///
    /// - Throws: `.invalidArgument` if a file cannot be read.
    package static func region(_ environment: [String: String]) throws(DownloadError) -> String? {
        for name in ["AWS_REGION", "AWS_DEFAULT_REGION"] {
            if let region = environment[name], !region.isEmpty { return region }
        }
        return try AWSProfile(in: environment).values["region"]
    }
}

/// A profile of AWS's files.
package struct AWSProfile: Sendable, Hashable {
    package let name: String
    /// The path of the file of credentials.
    package let path: String
    /// The values by their names in lower case. Those of the file of credentials count first.
    package private(set) var values: [String: String] = [:]
    private let region: String?

    /// Reads the profile `AWS_PROFILE`. A missing file, and a missing profile, have no values.
    ///
    /// - Throws: `.invalidArgument` if a file cannot be read.
    package init(in environment: [String: String]) throws(DownloadError) {
        func variable(_ name: String) -> String? { environment[name].flatMap { $0.isEmpty ? nil : $0 } }
        let home = (variable("HOME") ?? NSHomeDirectory()) + "/.aws"
        let named = variable("AWS_SHARED_CREDENTIALS_FILE")
        let config = variable("AWS_CONFIG_FILE")
        path = named ?? "\(home)/credentials"
        let name = variable("AWS_PROFILE") ?? "default"
        self.name = name
        region = variable("AWS_REGION") ?? variable("AWS_DEFAULT_REGION")
        let configPath = config ?? "\(home)/config"
        if config != nil || access(configPath, F_OK) == 0 {
            let bytes = try [UInt8](ofFile: configPath, limit: 1 << 20, named: "configuration file")
            values = Self.section(of: bytes) { $0 == "profile \(name)" || name == "default" && $0 == name }
        }
        if named != nil || access(path, F_OK) == 0 {
            let bytes = try [UInt8](ofFile: path, limit: 1 << 20, named: "credentials file")
            values.merge(Self.section(of: bytes) { $0 == name }) { $1 }
        }
    }

    /// The keys of the profile; nil if it has none. Their region is that of the variables, else the profile's.
    package var keys: AWSCredentials? {
        guard let id = values["aws_access_key_id"], let key = values["aws_secret_access_key"] else { return nil }
        return AWSCredentials(
            accessKeyID: id, secretAccessKey: key, sessionToken: values["aws_session_token"],
            region: region ?? values["region"])
    }

    private static func section(of bytes: [UInt8], _ isName: (String) -> Bool) -> [String: String] {
        var values: [String: String] = [:]
        var isWanted = false
        // A key without a value has values of its own, on lines that begin with a blank.
        var isGroup = false
        for line in String(decoding: bytes, as: UTF8.self).split(whereSeparator: \.isNewline) {
            let text = line.trimmingCharacters(in: .whitespaces)
            if isGroup, line.first?.isWhitespace == true { continue }
            isGroup = false
            if text.hasPrefix("["), let end = text.firstIndex(of: "]") {
                isWanted = isName(
                    text[text.index(after: text.startIndex)..<end].trimmingCharacters(in: .whitespaces))
            } else if isWanted, !text.hasPrefix("#"), !text.hasPrefix(";"), let equals = text.firstIndex(of: "=") {
                let key = text[..<equals].trimmingCharacters(in: .whitespaces).lowercased()
                let value = text[text.index(after: equals)...].trimmingCharacters(in: .whitespaces)
                isGroup = value.isEmpty
                if !value.isEmpty { values[key] = value }
            }
        }
        return values
    }
}

/// The credentials that came from a server or a program, which are valid for a while.
package final class AWSCredentialBook: Sendable {
    /// The book of this process.
    package static let shared = AWSCredentialBook()

    private struct Found {
        var keys: AWSCredentials
        var ends: ContinuousClock.Instant?
        var stored: ContinuousClock.Instant
        var isRefused = false
    }

    private let found = Locked<Found?>(nil)

    package init() {}

    /// The credentials; nil if there are none, or if they have ended.
    package var present: AWSCredentials? {
        found.withLock { found in
            guard let found, found.ends.map({ $0 > .now }) ?? true else { return nil }
            return found.keys
        }
    }

    /// True if the credentials are missing, were refused, or end within five minutes.
    package var mustRenew: Bool {
        found.withLock { found in
            guard let found, !found.isRefused else { return true }
            return found.ends.map { $0 < .now + .seconds(300) } ?? false
        }
    }

    /// The server says that the credentials have ended. They stay until there are others: a request may be on its way with them.
    ///
    /// - Parameter began: when the refused attempt began; the default is now. Credentials that were stored since are other ones.
    package func recordRefusal(began: ContinuousClock.Instant = .now) {
        found.withLock { found in
            if let stored = found?.stored, stored <= began { found?.isRefused = true }
        }
    }

    /// Stores credentials.
    ///
    /// - Parameter seconds: the time until they end; nil if they do not.
    package func store(_ keys: AWSCredentials, seconds: Double?) {
        let now = ContinuousClock.now
        found.withLock { $0 = Found(keys: keys, ends: seconds.map { now + .seconds($0) }, stored: now) }
    }
}

/// AWS Signature Version 4 of requests without a body, as S3 and compatible servers demand it. libcurl 7.88
/// (`CURLOPT_AWS_SIGV4`) does not sort queries and does not send the digest of the body, which S3 requires.
package struct AWSSignature: Sendable, Hashable {
    /// `aws`, for the algorithm and the scope.
    private let vendor: String
    /// `amz`, for the names of header fields.
    private let prefix: String
    private let region: String?
    private let service: String

    /// Reads `PROVIDER1[:PROVIDER2[:REGION[:SERVICE]]]`, as curl's `--aws-sigv4`. `aws` stands for `aws:amz`, any other provider
    /// for itself twice; the default service is `s3`.
    ///
    /// - Throws: `.invalidArgument` for another text.
    package init(_ text: String) throws(DownloadError) {
        let parts = text.split(separator: ":", omittingEmptySubsequences: false).map(String.init)
        guard parts.count <= 4, parts[0] != "", parts.dropFirst().first != "",
            parts.joined().utf8.allSatisfy({ byte in
                (0x30...0x39).contains(byte) || (0x61...0x7a).contains(byte | 0x20) || "-_".utf8.contains(byte)
            })
        else {
            throw DownloadError(
                .invalidArgument,
                "'\(text.prefix(60).visible)' is no provider of a signature: give aws:amz, or "
                    + "aws:amz:REGION:SERVICE.")
        }
        vendor = parts[0].lowercased()
        prefix = parts.count > 1 ? parts[1].lowercased() : vendor == "aws" ? "amz" : vendor
        region = parts.count > 2 && !parts[2].isEmpty ? parts[2] : nil
        service = parts.count > 3 && !parts[3].isEmpty ? parts[3] : "s3"
    }

    /// Signs the host, the path and the query of a GET or HEAD request, and adds the fields.
    package func sign(_ request: inout URLRequest, _ credentials: AWSCredentials, at date: Date) {
        for field in fields(for: request, credentials, at: date) {
            request.setValue(field.value, forHTTPHeaderField: field.name)
        }
    }

    /// The fields that sign the host, the path and the query of a GET or HEAD request. They are secrets of its origin.
    package func fields(for request: URLRequest, _ credentials: AWSCredentials, at date: Date) -> [HeaderField] {
        guard let url = request.url?.absoluteString else { return [] }
        let parts = URLParts(url)
        let time = Self.time(date)
        let region = region ?? credentials.region ?? Self.region(of: String(parts.hostPort)) ?? "us-east-1"
        let terms = [String(time.prefix(8)), region, service, "\(vendor)4_request"]
        let emptyBody = Digester.hex(Digester.bytes(of: "", .sha256))
        var fields = [
            ("host", Self.host(parts)), ("x-\(prefix)-content-sha256", emptyBody), ("x-\(prefix)-date", time),
        ]
        if let token = credentials.sessionToken { fields.append(("x-\(prefix)-security-token", token)) }
        // The store wants all fields of its own signed, such as `x-amz-request-payer`.
        let own = fields.count
        for (name, value) in request.allHTTPHeaderFields ?? [:] {
            let name = name.lowercased()
            guard name.hasPrefix("x-\(prefix)-"), !fields.contains(where: { $0.0 == name }) else { continue }
            fields.append((name, value.split(whereSeparator: { $0 == " " || $0 == "\t" }).joined(separator: " ")))
        }
        let others = Set(fields[own...].map(\.0))
        fields.sort { $0.0 < $1.0 }
        let names = fields.map(\.0).joined(separator: ";")
        let path = parts.path.isEmpty ? "/" : Self.encoded(parts.path, keeping: "/")
        let canonical =
            ([request.httpMethod ?? "GET", path, Self.query(parts.query ?? "")] + fields.map { "\($0):\($1)" }
            + ["", names, emptyBody]).joined(separator: "\n")
        let algorithm = "\(vendor.uppercased())4-HMAC-SHA256"
        let scope = terms.joined(separator: "/")
        var key = Array("\(vendor.uppercased())4\(credentials.secretAccessKey)".utf8)
        for term in terms { key = Self.authenticated(term, by: key) }
        let digest = Digester.hex(Digester.bytes(of: canonical, .sha256))
        let signature = Digester.hex(Self.authenticated("\(algorithm)\n\(time)\n\(scope)\n\(digest)", by: key))
        return fields.dropFirst().filter { !others.contains($0.0) }.map { HeaderField($0, $1) } + [
            HeaderField(
                "Authorization",
                "\(algorithm) Credential=\(credentials.accessKeyID)/\(scope), SignedHeaders=\(names), "
                    + "Signature=\(signature)")
        ]
    }

    /// `20130524T000000Z`. Foundation's styles need the data of ICU, which a static program does not have.
    private static func time(_ date: Date) -> String {
        var seconds = time_t(min(max(date.timeIntervalSince1970.rounded(.down), 0), 253_402_300_799))
        var parts = tm()
        gmtime_r(&seconds, &parts)
        func digits(_ number: Int32, _ count: Int = 2) -> String {
            let text = String(number)
            return String(repeating: "0", count: max(0, count - text.utf8.count)) + text
        }
        let day = digits(parts.tm_year + 1_900, 4) + digits(parts.tm_mon + 1) + digits(parts.tm_mday)
        return "\(day)T\(digits(parts.tm_hour))\(digits(parts.tm_min))\(digits(parts.tm_sec))Z"
    }

    /// The lower-case name of the field with the token, which is a secret as `Authorization` is.
    package var tokenField: String { "x-\(prefix)-security-token" }

    /// The Host field: a default port is not sent.
    private static func host(_ parts: URLParts) -> String {
        let host = parts.hostPort.lowercased()
        let port = parts.scheme?.lowercased() == "https" ? ":443" : ":80"
        return host.hasSuffix(port) ? String(host.dropLast(port.count)) : host
    }

    /// The region in a name such as `bucket.s3.eu-west-1.amazonaws.com`; nil for other hosts.
    private static func region(of host: String) -> String? {
        let labels = host.lowercased().split(separator: ".").map(String.init)
        guard let end = labels.firstIndex(of: "amazonaws"), end > 1, labels[..<(end - 1)].last?.hasPrefix("s3") == true,
            labels[end - 1].contains("-")
        else { return nil }
        return labels[end - 1]
    }

    private static func query(_ query: Substring) -> String {
        let items = query.split(separator: "&").map { item in
            let halves = item.split(separator: "=", maxSplits: 1, omittingEmptySubsequences: false)
            return (encoded(halves[0]), halves.count > 1 ? encoded(halves[1]) : "")
        }
        return items.sorted { $0 < $1 }.map { "\($0)=\($1)" }.joined(separator: "&")
    }

    /// Encodes everything but unreserved characters (RFC 3986 section 2.3), once. Existing percent-encodings are kept.
    private static func encoded(_ text: Substring, keeping kept: String = "") -> String {
        var bytes: [UInt8] = []
        var rest = text.utf8[...]
        while let first = rest.popFirst() {
            var byte = first
            let digits = rest.prefix(2)
            let isEscape = first == UInt8(ascii: "%") && digits.count == 2
            if isEscape, let value = UInt8(String(Substring(digits)), radix: 16) {
                byte = value
                rest = rest.dropFirst(2)
            }
            let isUnreserved =
                (0x30...0x39).contains(byte) || (0x61...0x7a).contains(byte | 0x20) || "-._~".utf8.contains(byte)
            if isUnreserved || byte == first && kept.utf8.contains(byte) {
                bytes.append(byte)
            } else {
                bytes += Array("%".utf8) + Array(Digester.hex([byte]).uppercased().utf8)
            }
        }
        return String(decoding: bytes, as: UTF8.self)
    }

    /// HMAC with SHA-256 (RFC 2104).
    private static func authenticated(_ text: String, by key: [UInt8]) -> [UInt8] {
        let key = key.count > 64 ? sha256(key) : key
        let padded = key + [UInt8](repeating: 0, count: 64 - key.count)
        return sha256(padded.map { $0 ^ 0x5c } + sha256(padded.map { $0 ^ 0x36 } + Array(text.utf8)))
    }

    private static func sha256(_ bytes: [UInt8]) -> [UInt8] {
        let digester = Digester(.sha256)
        bytes.withUnsafeBytes { digester.update($0) }
        return digester.bytes()
    }
}
