import FKMiddleware

/// A challenge of the header field `WWW-Authenticate` (RFC 9110 section 11.6.1).
struct AuthChallenge: Sendable, Hashable {
    /// The scheme, in lower case: `bearer`, `basic`.
    var scheme: String
    /// The parameters by name in lower case. The first value of a name counts.
    var parameters: [String: String] = [:]

    /// The most challenges, and the most parameters of one.
    private static let limit = 32

    /// The challenges of the values of a field, in order. Everything behind a malformed part of a value is left out.
    static func parse(_ values: [String]) -> [AuthChallenge] {
        var challenges: [AuthChallenge] = []
        for value in values {
            var rest = Array(value.utf8.prefix(16 << 10))[...]
            while challenges.count < limit {
                skip(&rest, ",")
                let name = token(&rest)
                guard !name.isEmpty else { break }
                var challenge = AuthChallenge(scheme: name.lowercased())
                challenge.read(&rest)
                challenges.append(challenge)
            }
        }
        return challenges
    }

    /// Reads the parameters up to the next scheme.
    private mutating func read(_ rest: inout ArraySlice<UInt8>) {
        while true {
            var ahead = rest
            Self.skip(&ahead, ",")
            let name = Self.token(&ahead)
            Self.skip(&ahead)
            guard !name.isEmpty, ahead.first == UInt8(ascii: "=") else { return }
            ahead = ahead.dropFirst()
            Self.skip(&ahead)
            guard let value = Self.value(&ahead) else {
                rest = []
                return
            }
            if parameters.count < Self.limit, parameters[name.lowercased()] == nil {
                parameters[name.lowercased()] = value
            }
            rest = ahead
        }
    }

    private static func skip(_ rest: inout ArraySlice<UInt8>, _ others: String = "") {
        rest = rest.drop { $0 == 0x20 || $0 == 0x09 || others.utf8.contains($0) }
    }

    private static func token(_ rest: inout ArraySlice<UInt8>) -> String {
        let bytes = rest.prefix(while: \.isTokenByte)
        rest = rest[bytes.endIndex...]
        return String(decoding: bytes, as: UTF8.self)
    }

    /// A token or a quoted text; nil for a text without an end, or one that is not UTF-8.
    private static func value(_ rest: inout ArraySlice<UInt8>) -> String? {
        guard rest.first == UInt8(ascii: "\"") else { return token(&rest) }
        rest = rest.dropFirst()
        var bytes: [UInt8] = []
        while let byte = rest.popFirst() {
            if byte == UInt8(ascii: "\"") { return String(validating: bytes, as: UTF8.self) }
            if byte == UInt8(ascii: "\\") {
                guard let next = rest.popFirst() else { return nil }
                bytes.append(next)
            } else {
                bytes.append(byte)
            }
        }
        return nil
    }
}

/// How a registry wants to be asked, by its first answer.
enum RegistryLogin: Sendable, Hashable {
    /// It answers anybody.
    case none
    /// It wants a user and a password with each request.
    case basic
    /// It wants a token of this server (the token protocol of Docker's registry, which all others have).
    case token(realm: String, service: String?)

    /// Reads the challenges of an answer with the status 401. A realm without TLS, or at another host without it, is refused unless
    /// the registry itself is asked without TLS, because a password may go to it.
    ///
    /// - Parameter registry: the URL of the registry.
    /// - Throws: `AnswerFault` for challenges that cannot be met.
    init(_ values: [String], of registry: String) throws(AnswerFault) {
        let challenges = AuthChallenge.parse(values)
        if let bearer = challenges.first(where: { $0.scheme == "bearer" }) {
            guard let realm = bearer.parameters["realm"], let origin = URLOrigin(realm),
                realm.urlFault == nil, URLParts(realm).userinfo == nil
            else { throw AnswerFault("the registry names no server for its tokens") }
            guard origin.scheme == "https" || URLOrigin(registry)?.scheme == "http" else {
                throw AnswerFault("the registry wants its tokens from \(realm.masked), which has no TLS")
            }
            self = .token(realm: realm, service: bearer.parameters["service"])
        } else if challenges.contains(where: { $0.scheme == "basic" }) {
            self = .basic
        } else {
            let names = challenges.map(\.scheme).prefix(5).joined(separator: ", ")
            throw AnswerFault(
                "the registry wants a login that is not supported\(names.isEmpty ? "" : " (\(names))")")
        }
    }

    /// The URL of a token that may read a repository; nil for another login.
    func tokenURL(for repository: String) -> String? {
        guard case .token(let realm, let service) = self else { return nil }
        let plain = realm.prefix { $0 != "#" }
        let pairs =
            (service.map { [("service", $0)] } ?? []) + [("scope", "repository:\(repository):pull")]
        let query = pairs.map { "\($0)=\(BaseURL.encoded($1).replacing("/", with: "%2F"))" }.joined(separator: "&")
        return plain + (plain.contains("?") ? "&" : "?") + query
    }
}

struct RegistryToken: Sendable, Hashable {
    /// The value for `Authorization: Bearer`.
    var text: String
    /// The seconds that it is valid, at least 1. The default is 60, as the protocol says.
    var seconds: Int

    /// Reads the answer of a token's server: `token` or `access_token`, and `expires_in`.
    ///
    /// - Throws: `AnswerFault` for an answer without a token.
    init(_ bytes: [UInt8]) throws(AnswerFault) {
        var reader = JSONReader(bytes)
        let object = try? reader.value().object
        guard let text = (object?["token"] ?? object?["access_token"])?.string.flatMap(SourceSecret.token),
            text.utf8.count <= 64 << 10
        else { throw AnswerFault("the server of the registry's tokens sent no token") }
        self.text = text
        seconds = Int(clamping: min(max(object?["expires_in"]?.integer ?? 60, 1), 86_400))
    }
}
