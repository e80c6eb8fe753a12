import FKMiddleware
import Foundation

/// The certificate that a client shows to a server that asks for one (mutual TLS, RFC 8446 section 4.3.2).
public struct ClientCertificate: Codable, Sendable, Hashable {
    /// A PEM file with the certificate, and with its key if `keyFile` is nil. The key must not be encrypted.
    public var file: URL {
        get { URL.file(path) }
        set { path = newValue.absoluteURL.filePath }
    }
    /// A PEM file with the private key; nil, the default, reads it from `file`.
    public var keyFile: URL? {
        get { keyPath.map(URL.file) }
        set { keyPath = newValue?.absoluteURL.filePath }
    }

    /// The path of `file`.
    package var path: String
    /// The path of `keyFile`.
    package var keyPath: String?

    /// Creates a certificate from its files. They are read at each connection.
    public init(file: URL, keyFile: URL? = nil) {
        path = file.absoluteURL.filePath
        keyPath = keyFile?.absoluteURL.filePath
    }

    private enum CodingKeys: String, CodingKey {
        case path = "file"
        case keyPath = "keyFile"
    }
}

/// The kind of IP addresses to connect to.
public enum AddressFamily: String, Codable, Sendable, Hashable, CaseIterable {
    /// IPv4 only.
    case ipv4
    /// IPv6 only.
    case ipv6
}

/// The address to connect to for a host and port, like curl's `--resolve`. TLS still proves the host's name.
package struct HostAddress: Codable, Sendable, Hashable {
    /// As `HOST:PORT:ADDRESS`.
    package var text: String

    /// Creates a route from `HOST:PORT:ADDRESS`; `*` is any host, and an IPv6 address may stand in brackets.
    ///
    /// - Throws: `.invalidArgument` for another form.
    package init(_ text: String) throws(DownloadError) {
        self.text = text
        if let fault = Self.fault(in: text) { throw DownloadError(.invalidArgument, "\(fault).") }
    }

    package init(from decoder: any Decoder) throws { text = try decoder.singleValueContainer().decode(String.self) }

    package func encode(to encoder: any Encoder) throws {
        var container = encoder.singleValueContainer()
        try container.encode(text)
    }

    /// `HOST:PORT:ADDRESS:PORT`, the form of libcurl's option for one request. Its cache of names would serve others as well.
    package var connectTo: String {
        guard let parts = Self.parts(of: text) else { return "" }
        let address = parts.address.contains(":") ? "[\(parts.address)]" : parts.address
        return "\(parts.host == "*" ? "" : parts.host):\(parts.port):\(address):\(parts.port)"
    }

    /// What is wrong with the text; nil if nothing is.
    package static func fault(in text: String) -> String? {
        parts(of: text) == nil
            ? "\"\(text.prefix(80).visible)\" is no address of a host: give HOST:PORT:ADDRESS, with one IPv4 or IPv6 address"
            : nil
    }

    private static func parts(of text: String) -> (host: String, port: Int, address: String)? {
        let start = text.hasPrefix("[") ? text.firstIndex(of: "]") ?? text.startIndex : text.startIndex
        guard let colon = text[start...].firstIndex(of: ":"),
            let second = text[text.index(after: colon)...].firstIndex(of: ":")
        else { return nil }
        let host = String(text[..<colon])
        guard let port = UInt16(text[text.index(after: colon)..<second]), port > 0 else { return nil }
        var address = String(text[text.index(after: second)...])
        if address.hasPrefix("["), address.hasSuffix("]") { address = String(address.dropFirst().dropLast()) }
        let isHost = !host.isEmpty && host.utf8.allSatisfy { $0 > 0x20 && $0 != 0x7f && !"/@?#,".utf8.contains($0) }
        guard isHost, isAddress(address) else { return nil }
        return (host, Int(port), address)
    }

    private static func isAddress(_ text: String) -> Bool {
        var bytes = in6_addr()
        return inet_pton(AF_INET, text, &bytes) == 1 || inet_pton(AF_INET6, text, &bytes) == 1
    }
}
