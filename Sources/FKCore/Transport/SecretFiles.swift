import FKMiddleware
import Foundation

/// The files of secrets that libcurl reads by itself, so that no request has their values: `~/.netrc`, and those of cookies. They are read
/// again where a server's words are to be shown.
struct SecretFiles: Sendable {
    private var usesNetrc = false
    private var cookiePaths: [String] = []

    init() {}

    init(_ secrets: [Secret]) {
        for secret in secrets {
            let files = secret.files
            usesNetrc = usesNetrc || files.netrc
            cookiePaths += files.cookies
        }
    }

    /// The logins of all hosts, and the cookies of the hosts of these URLs. A file that cannot be read has none.
    func values(for urls: [String]) -> Set<String> {
        guard usesNetrc || !cookiePaths.isEmpty else { return [] }
        var values: Set<String> = []
        if usesNetrc {
            let home = ProcessInfo.processInfo.environment["HOME"].flatMap { $0.isEmpty ? nil : $0 }
            let path = (home ?? NSHomeDirectory()) + "/.netrc"
            if let bytes = try? [UInt8](ofFile: path, limit: 1 << 20, named: "file of logins") {
                values = Self.logins(in: String(decoding: bytes, as: UTF8.self))
            }
        }
        let hosts = urls.compactMap { URLOrigin($0)?.host }
        for path in cookiePaths {
            for line in (try? TransportOptions.cookies(in: path)) ?? [] {
                if let value = Self.cookie(line, of: hosts) {
                    values.formUnion([value, value.removingPercentEncoding ?? value])
                }
            }
        }
        return values
    }

    /// The passwords of a netrc file, each also as Basic authentication sends it.
    static func logins(in text: String) -> Set<String> {
        var values: Set<String> = []
        var login = ""
        let words = text.split(whereSeparator: \.isWhitespace).map { word in
            word.count > 1 && word.first == "\"" && word.last == "\""
                ? String(word.dropFirst().dropLast()) : String(word)
        }
        for (name, value) in zip(words, words.dropFirst()) {
            switch name {
            case "machine": login = ""
            case "login": login = value
            case "password": values.formUnion(SecretBook.values(ofLogin: "\(login):\(value)"))
            case "account": values.insert(value)
            default: break
            }
        }
        return values
    }

    /// The value of a cookie line of Netscape's form, if one of the hosts gets it.
    static func cookie(_ line: String, of hosts: [String]) -> String? {
        let parts = line.split(separator: "\t", maxSplits: 6, omittingEmptySubsequences: false)
        guard parts.count == 7 else { return nil }
        let name = parts[0].hasPrefix("#HttpOnly_") ? parts[0].dropFirst(10) : parts[0]
        let domain = name.drop { $0 == "." }.lowercased()
        return hosts.contains { $0 == domain || $0.hasSuffix("." + domain) } ? String(parts[6]) : nil
    }
}

extension Secret {
    /// The files that libcurl reads for the secret, for masking.
    fileprivate var files: (netrc: Bool, cookies: [String]) {
        switch shape {
        case .netrc: (true, [])
        case .cookies(let path): (false, [path])
        case .login(_, let sessions): (true, sessions.map { [$0] } ?? [])
        case .field, .certificate: (false, [])
        }
    }
}
