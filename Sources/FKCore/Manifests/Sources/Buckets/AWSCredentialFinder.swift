import FKEngine
import FKMiddleware
import FKTransport
import Foundation

/// Finds the credentials of AWS that a server or a program has, where Amazon's own tools look for them: those of a web identity
/// (Kubernetes), of a program (`credential_process`), of a container, or of an instance.
///
/// They go to the process's `AWSCredentialBook`, which `AWSCredentials.usual` reads, and to no file.
package struct AWSCredentialFinder: Sendable {
    enum Place: Sendable, Hashable {
        /// A file with a token, which STS takes for a role.
        case webIdentity(tokenFile: String, role: String, session: String)
        /// A program that writes JSON, as a command line.
        case program(String)
        /// The endpoint of a container, with the value of `Authorization`; nil for none.
        case container(url: String, token: String?)
        /// The metadata service of an instance.
        case instance(endpoint: String)
    }

    private let environment: [String: String]

    package init(_ environment: [String: String]) { self.environment = environment }

    /// Makes sure that the credentials of the book are there and valid for five minutes more. It does nothing if the variables or the
    /// profile have keys, or if there is no other place for credentials.
    ///
    /// - Parameter connection: the proxy, the trust and the route of requests to STS; nil, the default, for those of the task whose
    ///   request chain runs.
    /// - Returns: false if there are no credentials at all.
    /// - Throws: the errors of the server or the program.
    package func renew(
        over transport: any Transport, _ connection: TaskOptions? = nil
    ) async throws(DownloadError) -> Bool {
        if AWSCredentials.variables(environment) != nil { return true }
        let profile = try AWSProfile(in: environment)
        guard let place = try Self.place(in: environment, profile, isInstance: Self.isInstance) else {
            return profile.keys != nil
        }
        guard AWSCredentialBook.shared.mustRenew else { return true }
        do throws(DownloadError) { try await ask(place, transport, connection) } catch {
            // A machine without a role has no credentials, and that is no error.
            guard case .instance = place, error.code != .cancelled else { throw error }
            return AWSCredentialBook.shared.present != nil
        }
        return true
    }

    /// True if a server or a program has credentials that are missing here, or end soon.
    ///
    /// - Throws: `.invalidArgument` if a file cannot be read, or for an endpoint that may not be asked.
    func mustAsk() throws(DownloadError) -> Bool {
        guard AWSCredentialBook.shared.mustRenew else { return false }
        return try hasPlace
    }

    /// True if a server or a program has the credentials.
    var hasPlace: Bool {
        get throws(DownloadError) {
            try Self.place(in: environment, AWSProfile(in: environment), isInstance: Self.isInstance) != nil
        }
    }

    private func ask(
        _ place: Place, _ transport: any Transport, _ connection: TaskOptions?
    ) async throws(DownloadError) {
        let answer =
            switch place {
            case .instance(let endpoint): try await instance(endpoint, transport)
            case .webIdentity(let file, let role, let session):
                try await webIdentity(file, role, session, transport, connection ?? ConnectionOptions.ofChain)
            case .program(let line): try await program(line)
            case .container(let url, let token): try await container(url, token, transport)
            }
        let seconds = answer.ends.map { Double($0) - Date().timeIntervalSince1970 }
        if let seconds, seconds <= 0 {
            throw DownloadError(.invalidArgument, "The AWS credentials have expired: what gives them gave old ones.")
        }
        AWSCredentialBook.shared.store(answer.keys, seconds: seconds)
    }

    // MARK: Places

    /// The first place that has credentials; nil if the variables or the profile have keys, or if there is none.
    ///
    /// | order | place |
    /// | --- | --- |
    /// | 1 | `AWS_WEB_IDENTITY_TOKEN_FILE` and `AWS_ROLE_ARN` |
    /// | 2 | the keys of the profile: nil |
    /// | 3 | `credential_process` of the profile |
    /// | 4 | `AWS_CONTAINER_CREDENTIALS_RELATIVE_URI` or `AWS_CONTAINER_CREDENTIALS_FULL_URI` |
    /// | 5 | `AWS_EC2_METADATA_SERVICE_ENDPOINT`, or the usual address on a machine of Amazon's, unless `AWS_EC2_METADATA_DISABLED` |
    ///
    /// - Throws: `.invalidArgument` for an endpoint that would send credentials over the network without TLS.
    static func place(
        in environment: [String: String], _ profile: AWSProfile, isInstance: Bool
    ) throws(DownloadError) -> Place? {
        func variable(_ name: String) -> String? { environment[name].flatMap { $0.isEmpty ? nil : $0 } }
        if AWSCredentials.variables(environment) != nil { return nil }
        if let file = variable("AWS_WEB_IDENTITY_TOKEN_FILE"), let role = variable("AWS_ROLE_ARN") {
            return .webIdentity(tokenFile: file, role: role, session: variable("AWS_ROLE_SESSION_NAME") ?? "fk")
        }
        if profile.keys != nil { return nil }
        if let line = profile.values["credential_process"] { return .program(line) }
        if let path = variable("AWS_CONTAINER_CREDENTIALS_RELATIVE_URI") {
            return .container(url: "http://169.254.170.2\(path.hasPrefix("/") ? "" : "/")\(path)", token: nil)
        }
        if let url = variable("AWS_CONTAINER_CREDENTIALS_FULL_URI") {
            guard let origin = URLOrigin(url), origin.scheme == "https" || isContainerHost(origin.host) else {
                throw DownloadError(
                    .invalidArgument,
                    "AWS_CONTAINER_CREDENTIALS_FULL_URI is neither https nor an address of this machine or of a container's agent."
                )
            }
            var token = variable("AWS_CONTAINER_AUTHORIZATION_TOKEN")
            if let path = variable("AWS_CONTAINER_AUTHORIZATION_TOKEN_FILE") {
                token = try text(ofFile: path, "token of the container")
            }
            return .container(url: url, token: token)
        }
        if variable("AWS_EC2_METADATA_DISABLED")?.lowercased() == "true" { return nil }
        if let endpoint = variable("AWS_EC2_METADATA_SERVICE_ENDPOINT") {
            return .instance(endpoint: endpoint.hasSuffix("/") ? String(endpoint.dropLast()) : endpoint)
        }
        return isInstance ? .instance(endpoint: "http://169.254.169.254") : nil
    }

    /// The addresses that Amazon's tools allow without TLS.
    private static func isContainerHost(_ host: String) -> Bool {
        host == "localhost" || host.hasPrefix("127.")
            || ["::1", "169.254.170.2", "169.254.170.23", "fd00:ec2::23"].contains(host)
    }

    /// True for a machine of Amazon's, by its firmware. On any other, nothing is asked at the address of the metadata.
    private static let isInstance: Bool = {
        for path in ["/sys/class/dmi/id/sys_vendor", "/sys/class/dmi/id/board_vendor"] {
            guard let bytes = try? [UInt8](ofFile: path, limit: 4_096, named: "vendor") else { continue }
            if String(decoding: bytes, as: UTF8.self).hasPrefix("Amazon EC2") { return true }
        }
        return false
    }()

    // MARK: Answers

    /// Credentials, and when they end in seconds since 1970; nil if they do not.
    struct Answer: Sendable, Hashable {
        var keys: AWSCredentials
        var ends: Int64?

        /// Reads the JSON of a program, a container or an instance.
        init(json bytes: [UInt8]) throws(AnswerFault) {
            let object = try SourceJSON.object(bytes, "the answer")
            if let code = object["Code"]?.string, code != "Success" {
                throw AnswerFault("the answer is '\(code.prefix(80))'")
            }
            self = try Self.made(
                id: object["AccessKeyId"]?.string, key: object["SecretAccessKey"]?.string,
                token: (object["Token"] ?? object["SessionToken"])?.string, ends: object["Expiration"]?.string)
        }

        /// Reads the XML of STS.
        init(xml bytes: [UInt8]) throws(AnswerFault) {
            var values: [String: String] = [:]
            do {
                try XMLElements.read(bytes, root: { $0 == "AssumeRoleWithWebIdentityResponse" }) { element in
                    guard element.path.count == 3, element.path[1] == "Credentials" else { return }
                    values[element.path[2]] = element.text
                }
            } catch {
                throw AnswerFault("the answer cannot be read")
            }
            self = try Self.made(
                id: values["AccessKeyId"], key: values["SecretAccessKey"], token: values["SessionToken"],
                ends: values["Expiration"])
        }

        private static func made(
            id: String?, key: String?, token: String?, ends: String?
        ) throws(AnswerFault) -> Answer {
            guard let id, !id.isEmpty, let key, !key.isEmpty else { throw AnswerFault("the answer has no keys") }
            for value in [id, token ?? ""] where !value.utf8.allSatisfy({ $0 > 0x20 && $0 < 0x7f }) {
                throw AnswerFault("the answer has a key that no header field can have")
            }
            var time: Int64?
            if let ends {
                guard let seconds = RFC3339.seconds(ends) else {
                    throw AnswerFault("the answer has no readable time of its end")
                }
                time = seconds
            }
            return Answer(
                keys: AWSCredentials(accessKeyID: id, secretAccessKey: key, sessionToken: token), ends: time)
        }

        private init(keys: AWSCredentials, ends: Int64?) { (self.keys, self.ends) = (keys, ends) }
    }

    // MARK: Requests

    /// The most seconds for an answer, and the attempts: these servers are on the machine or near it.
    private static func options(attempts: Int) -> TaskOptions {
        var options = TaskOptions()
        options.timeout = .seconds(5)
        options.maxAttempts = attempts
        // No proxy gets credentials.
        options.proxy = ""
        return options
    }

    private func document(
        _ url: String, attempts: Int = 3, _ transport: any Transport,
        _ change: (inout DocumentRequest) -> Void = { _ in }
    ) async throws(DownloadError) -> [UInt8] {
        var request = DocumentRequest(url: try url.normalizedURL(), options: Self.options(attempts: attempts))
        request.limit = 1 << 20
        change(&request)
        return try await request.fetch(over: transport).bytes ?? []
    }

    private func webIdentity(
        _ file: String, _ role: String, _ session: String, _ transport: any Transport, _ connection: TaskOptions?
    ) async throws(DownloadError) -> Answer {
        let token = try Self.text(ofFile: file, "token of the web identity")
        let region = try AWSCredentials.region(environment) ?? "us-east-1"
        let named = ["AWS_ENDPOINT_URL_STS", "AWS_ENDPOINT_URL"].compactMap { environment[$0] }.first { !$0.isEmpty }
        let endpoint = named ?? "https://sts.\(BucketServer.isRegion(region) ? region : "us-east-1").amazonaws.com"
        let form = [
            ("Action", "AssumeRoleWithWebIdentity"), ("Version", "2011-06-15"), ("RoleArn", role),
            ("RoleSessionName", session), ("WebIdentityToken", token),
        ].map { "\($0)=\(BaseURL.encoded($1).replacing("/", with: "%2F"))" }.joined(separator: "&")
        let bytes: [UInt8]
        do throws(DownloadError) {
            bytes = try await document(endpoint, transport) { request in
                request.method = "POST"
                request.body = Data(form.utf8)
                if let connection { request.options.adopt(connection, to: endpoint) }
                request.headers = [HeaderField("Content-Type", "application/x-www-form-urlencoded")]
            }
        } catch {
            throw Self.failed("STS gave no credentials for the role \(role.visible)", error)
        }
        do { return try Answer(xml: bytes) } catch { throw Self.malformed("STS", error) }
    }

    private func program(_ line: String) async throws(DownloadError) -> Answer {
        guard let words = Self.words(of: line), !words.isEmpty else {
            throw DownloadError(.invalidArgument, "The credential_process of the profile has a quote without an end.")
        }
        var run = ProgramRun(words, in: environment["HOME"].flatMap { $0.hasPrefix("/") ? $0 : nil } ?? "/")
        run.timeLimit = .seconds(60)
        // The owner's own program, which may need any of them.
        run.variables = environment.map { (name: $0.key, value: $0.value) }
        let bytes = try await run()
        do { return try Answer(json: bytes) } catch { throw Self.malformed("The credential_process", error) }
    }

    /// The words of a command line, with quotes as a shell has them; nil for a quote without an end.
    static func words(of line: String) -> [String]? {
        var words: [String] = []
        var word: String?
        var quote: Character?
        var isEscaped = false
        for character in line {
            if isEscaped {
                word = (word ?? "") + String(character)
                isEscaped = false
            } else if character == "\\", quote != "'" {
                isEscaped = true
            } else if let open = quote {
                if character == open { quote = nil } else { word = (word ?? "") + String(character) }
            } else if character == "'" || character == "\"" {
                quote = character
                word = word ?? ""
            } else if character == " " || character == "\t" {
                if let done = word { words.append(done) }
                word = nil
            } else {
                word = (word ?? "") + String(character)
            }
        }
        if let word { words.append(word) }
        return quote == nil && !isEscaped ? words : nil
    }

    private func container(
        _ url: String, _ token: String?, _ transport: any Transport
    ) async throws(DownloadError) -> Answer {
        let bytes: [UInt8]
        do throws(DownloadError) {
            bytes = try await document(url, transport) { request in
                guard let token else { return }
                request.headers = [HeaderField("Authorization", token)]
                request.secretHeaders = ["authorization"]
            }
        } catch {
            throw Self.failed("The container has no credentials", error)
        }
        do { return try Answer(json: bytes) } catch { throw Self.malformed("The container's endpoint", error) }
    }

    /// Version 2 of the metadata service: a token first, which no forwarded request can get.
    private func instance(_ endpoint: String, _ transport: any Transport) async throws(DownloadError) -> Answer {
        let token = String(
            decoding: try await document("\(endpoint)/latest/api/token", attempts: 1, transport) { request in
                request.method = "PUT"
                request.headers = [HeaderField("X-aws-ec2-metadata-token-ttl-seconds", "21600")]
            }, as: UTF8.self)
        guard let token = SourceSecret.token(token) else {
            throw DownloadError(.protocolViolation, "The metadata service of the instance sent no token.")
        }
        func get(_ path: String) async throws(DownloadError) -> [UInt8] {
            try await document("\(endpoint)/latest/meta-data/iam/security-credentials/\(path)", transport) { request in
                request.headers = [HeaderField("X-aws-ec2-metadata-token", token)]
                request.secretHeaders = ["x-aws-ec2-metadata-token"]
            }
        }
        let names = String(decoding: try await get(""), as: UTF8.self)
        guard let role = names.split(whereSeparator: \.isNewline).first.map(String.init), role.utf8.count <= 128 else {
            throw DownloadError(.notFound, "The instance has no role.")
        }
        let bytes = try await get(BaseURL.encoded(role))
        do { return try Answer(json: bytes) } catch {
            throw Self.malformed("The metadata service of the instance", error)
        }
    }

    private static func text(ofFile path: String, _ name: String) throws(DownloadError) -> String {
        let bytes = try [UInt8](ofFile: path, limit: 64 << 10, named: name)
        guard let text = SourceSecret.token(String(decoding: bytes, as: UTF8.self)) else {
            throw DownloadError(.invalidArgument, "The \(name) \(path.visible) has no token.")
        }
        return text
    }

    private static func failed(_ what: String, _ error: DownloadError) -> DownloadError {
        var error = error
        error.message = "\(what): \(error.message)"
        return error
    }

    private static func malformed(_ who: String, _ error: AnswerFault) -> DownloadError {
        DownloadError(.protocolViolation, "\(who) gave no usable credentials: \(error.reason).")
    }
}

/// Renews the credentials of AWS before a signed request, if a server or a program has them.
package struct AWSCredentialMiddleware: RequestMiddleware, RetryMiddleware {
    package let name = "aws-credentials"
    private let finder: AWSCredentialFinder

    package init(_ environment: [String: String]) { finder = AWSCredentialFinder(environment) }

    /// Before everything that sends the request.
    package var priority: Int { 1 }

    /// Renews the credentials, once for all requests that need them, and leaves the request as it is.
    package func process(_ request: URLRequest, for task: TaskContext) async throws -> URLRequest {
        guard task.isSigned, try finder.mustAsk() else { return request }
        let flight = Self.flight.withLock { flight -> Task<Void, any Error> in
            if let flight { return flight }
            let new = Task { [finder] in
                defer { Self.flight.withLock { $0 = nil } }
                let transport = try TransportKind.automatic.makeTransport()
                defer { transport.shutdown() }
                _ = try await finder.renew(over: transport)
            }
            flight = new
            return new
        }
        try await flight.value
        return request
    }

    /// Forgets credentials that have ended before their time, and tries once more with new ones.
    package func decide(_ failure: AttemptFailure) async -> RetryDecision {
        guard failure.task.isSigned, AWSCredentialBook.saysEnded(failure.error),
            failure.previousError.map(AWSCredentialBook.saysEnded) != true || failure.progress > 0,
            (try? finder.hasPlace) == true
        else { return .useRules }
        AWSCredentialBook.shared.recordRefusal(began: failure.began)
        return .renewed
    }

    /// The renewal in progress.
    private static let flight = Locked<Task<Void, any Error>?>(nil)
}

extension AWSCredentialBook {
    /// The codes of S3 for credentials that have ended.
    static let endedCodes = ["ExpiredToken", "TokenRefreshRequired"]

    /// True for the refusal of a server whose body has such a code.
    fileprivate static func saysEnded(_ error: DownloadError) -> Bool {
        guard let status = error.status, [400, 401, 403].contains(status), let text = error.underlying else {
            return false
        }
        return endedCodes.contains { text.contains($0) }
    }
}

extension TaskOptions {
    /// Takes the way of the owner's requests. A proxy sees nothing of a request over https; over http it would see the token. STS must
    /// always prove who it is.
    fileprivate mutating func adopt(_ connection: TaskOptions, to endpoint: String) {
        var taken = connection
        (taken.timeoutSeconds, taken.maxAttempts, taken.insecure) = (timeoutSeconds, maxAttempts, nil)
        if !endpoint.lowercased().hasPrefix("https://") { taken.proxy = "" }
        self = taken
    }
}

extension AWSCredentials {
    /// Checks that requests can be signed as `AWSSignature` reads the provider: a server or a program has credentials, or they are there.
    ///
    /// - Throws: `.invalidArgument`, and the errors of `usual`.
    package static func check(for provider: String, in environment: [String: String]) throws(DownloadError) {
        _ = try AWSSignature(provider)
        if try !AWSCredentialFinder(environment).hasPlace { _ = try usual(environment: environment) }
    }
}
