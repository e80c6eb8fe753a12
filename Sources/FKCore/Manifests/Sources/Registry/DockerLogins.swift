import FKMiddleware
import Foundation

/// The logins of registries that Docker, Podman and Skopeo have saved. They are read each time they are used.
struct DockerLogins: Sendable {
    /// A login, or the program that has it.
    enum Entry: Sendable, Hashable {
        case login(user: String, password: String)
        /// The name of a helper: `docker-credential-NAME`.
        case helper(String)
    }

    private let documents: [JSONReader.Object]
    /// Why a file has no logins although it is there, as a clause; nil if each could be read.
    private(set) var fault: String?

    /// The maximum length of a file in bytes.
    private static let maxBytes = 1 << 20

    /// Reads the files, the first one first: that of `REGISTRY_AUTH_FILE`; `auth.json` of `$XDG_RUNTIME_DIR/containers`;
    /// `config.json` of `DOCKER_CONFIG` or of `~/.docker`. A missing file has no logins, and so has a malformed one, which is a `fault`.
    init(in environment: [String: String]) {
        func value(_ name: String) -> String? { environment[name].flatMap { $0.isEmpty ? nil : $0 } }
        let home = value("HOME") ?? NSHomeDirectory()
        let paths = [
            value("REGISTRY_AUTH_FILE"), value("XDG_RUNTIME_DIR").map { "\($0)/containers/auth.json" },
            "\(value("DOCKER_CONFIG") ?? "\(home)/.docker")/config.json",
        ]
        var documents: [[UInt8]] = []
        var fault: String?
        for path in paths.compactMap(\.self) where access(path, F_OK) == 0 {
            guard let bytes = try? [UInt8](ofFile: path, limit: Self.maxBytes, named: "file of logins") else {
                fault = "\(path) cannot be read"
                continue
            }
            var reader = JSONReader(bytes)
            if (try? reader.value().object) == nil { fault = "\(path) is no JSON" }
            documents.append(bytes)
        }
        self.init(documents)
        self.fault = fault
    }

    init(_ documents: [[UInt8]]) {
        self.documents = documents.compactMap { bytes in
            var reader = JSONReader(bytes)
            return try? reader.value().object
        }
    }

    /// The login for a registry; nil if there is none.
    ///
    /// - Parameters:
    ///   - registry: the registry as people write it, such as `ghcr.io`.
    ///   - repository: a login may be saved for a part of a registry.
    func entry(for registry: String, _ repository: String) -> Entry? {
        let isDocker = registry == "docker.io" || registry == "index.docker.io" || registry == "registry-1.docker.io"
        let hosts =
            isDocker
            ? ["https://index.docker.io/v1/", "index.docker.io", "docker.io", "registry-1.docker.io"] : [registry]
        for document in documents {
            let helpers = document["credHelpers"]?.object
            for host in hosts { if let name = helpers?[host]?.string, Self.isHelper(name) { return .helper(name) } }
            let logins = document["auths"]?.object?.members ?? []
            for key in Self.keys(hosts, repository) {
                for member in logins where Self.plain(member.name) == Self.plain(key) {
                    if let login = Self.login(member.value.object) { return login }
                }
            }
            if let name = document["credsStore"]?.string, Self.isHelper(name) { return .helper(name) }
        }
        return nil
    }

    /// The name that a helper is asked for.
    static func helperKey(of registry: String) -> String {
        registry == "docker.io" ? "https://index.docker.io/v1/" : registry
    }

    static func login(ofHelper bytes: [UInt8]) -> Entry? {
        var reader = JSONReader(bytes)
        guard let object = try? reader.value().object, let user = object["Username"]?.string,
            let password = object["Secret"]?.string, !password.isEmpty
        else { return nil }
        return .login(user: user, password: password)
    }

    /// The names for a repository, the longest first: `HOST/a/b`, `HOST/a`, `HOST`.
    private static func keys(_ hosts: [String], _ repository: String) -> [String] {
        var parts = repository.split(separator: "/").map(String.init)
        var keys: [String] = []
        while !parts.isEmpty {
            keys += hosts.filter { !$0.contains("://") }.map { "\($0)/\(parts.joined(separator: "/"))" }
            parts.removeLast()
        }
        return keys + hosts
    }

    private static func plain(_ key: String) -> Substring {
        var text = Substring(key)
        for scheme in ["https://", "http://"] where text.hasPrefix(scheme) { text = text.dropFirst(scheme.count) }
        for end in ["/v1/", "/v2/", "/v1", "/v2", "/"] where text.hasSuffix(end) { text = text.dropLast(end.count) }
        return text
    }

    private static func login(_ object: JSONReader.Object?) -> Entry? {
        guard let object else { return nil }
        if let text = object["auth"]?.string, let data = Data(base64Encoded: text),
            let pair = String(validating: Array(data), as: UTF8.self), let colon = pair.firstIndex(of: ":")
        {
            let password = pair[pair.index(after: colon)...].filter { $0 != "\0" }
            if !password.isEmpty { return .login(user: String(pair[..<colon]), password: String(password)) }
        }
        guard let user = object["username"]?.string, let password = object["password"]?.string, !password.isEmpty else {
            return nil
        }
        return .login(user: user, password: password)
    }

    /// A helper's name becomes a part of a program's name.
    private static func isHelper(_ name: String) -> Bool {
        (1...64).contains(name.utf8.count)
            && name.utf8.allSatisfy { $0.isASCIILetter || $0.isASCIIDigit || "-_.".utf8.contains($0) }
    }
}
