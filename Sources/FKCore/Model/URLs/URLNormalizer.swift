import FKMiddleware
import Foundation

/// Converts a typed URL into its single spelling. The spelling is stored, sent, and hashed into the task's id.
///
/// It changes only what RFC 3986 section 6.2 calls safe: the case of scheme and host, the default port, an empty
/// path, and characters that URLs must not contain. Percent-encoded bytes, their case and dot segments stay, because
/// signatures often cover the exact text.
enum URLNormalizer {
    /// The maximum length of a URL, before and after encoding: 64 KiB.
    static let maxBytes = 64 << 10

    /// The full rules, without the shortcut for URLs in normal form.
    static func normalizeFully(_ text: String) throws(DownloadError) -> String {
        let bytes = trimmed(text)
        guard !bytes.isEmpty else { throw invalid("The URL is empty. Give one such as https://example.com/file.") }
        guard bytes.count <= maxBytes else { throw invalid("The URL is longer than \(maxBytes) bytes.") }
        guard bytes.allSatisfy({ $0 >= 0x20 && $0 != 0x7f }) else {
            throw invalid("The URL holds control characters, such as a line end in its middle.")
        }
        let (scheme, rest) = try splitScheme(bytes)
        let authorityEnd = rest.firstIndex { $0 == .slash || $0 == .question || $0 == .hash } ?? rest.endIndex
        let authority = try normalizeAuthority(rest[..<authorityEnd], scheme: scheme)
        let target = rest[authorityEnd...].prefix { $0 != .hash }
        let queryStart = target.firstIndex(of: .question) ?? target.endIndex

        var result = "\(scheme)://\(authority)"
        result += queryStart == target.startIndex ? "/" : encode(target[..<queryStart], extra: "/:@")
        if queryStart < target.endIndex {
            result += "?" + encode(target[queryStart...].dropFirst(), extra: "/:@?")
        }
        guard result.utf8.count <= maxBytes else {
            throw invalid("The URL is longer than \(maxBytes) bytes once it is percent-encoded.")
        }
        return result
    }

    // MARK: Scheme

    private static func splitScheme(_ bytes: ArraySlice<UInt8>) throws(DownloadError) -> (String, ArraySlice<UInt8>) {
        let noScheme = "The URL has no scheme. Write it in full, such as https://example.com/file."
        guard let colon = bytes.firstIndex(of: .colon), let first = bytes.first, first.isASCIILetter,
            bytes[..<colon].allSatisfy({ $0.isASCIILetter || $0.isASCIIDigit || "+-.".utf8.contains($0) })
        else { throw invalid(noScheme) }
        let scheme = String(decoding: bytes[..<colon], as: UTF8.self).lowercased()
        let rest = bytes[(colon + 1)...]
        let hasAuthority = rest.starts(with: "//".utf8)
        guard scheme == "http" || scheme == "https" else {
            // By the grammar `localhost:8080/file` starts with a scheme, but it means a host.
            if !hasAuthority, let next = rest.first, next.isASCIIDigit { throw invalid(noScheme) }
            throw DownloadError(.unsupportedScheme, "The scheme \"\(scheme)\" is not supported; use http or https.")
        }
        guard hasAuthority else { throw invalid("The URL has no host. Write it as \(scheme)://host/path.") }
        return (scheme, rest.dropFirst(2))
    }

    // MARK: Authority

    private static func normalizeAuthority(
        _ bytes: ArraySlice<UInt8>, scheme: String
    ) throws(DownloadError) -> String {
        // Some parsers end the authority at a backslash and others do not, so the text could mean two hosts.
        guard !bytes.contains(.backslash) else { throw invalid("The host part of the URL holds a backslash.") }
        var userinfo = ""
        var hostPort = bytes
        if let at = bytes.lastIndex(of: .at) {
            userinfo = encode(bytes[..<at], extra: ":")
            hostPort = bytes[(at + 1)...]
        }
        let (hostBytes, portBytes) = try splitPort(hostPort)
        guard !hostBytes.isEmpty else { throw invalid("The URL has no host. Write it as \(scheme)://host/path.") }
        let host = hostBytes.first == .openBracket ? try literal(hostBytes) : try registeredName(hostBytes)
        var result = userinfo.isEmpty ? host : "\(userinfo)@\(host)"
        if !portBytes.isEmpty {
            guard portBytes.allSatisfy(\.isASCIIDigit), let port = Int(String(decoding: portBytes, as: UTF8.self)),
                (1...65535).contains(port)
            else { throw invalid("The port of the URL is not a number from 1 to 65535.") }
            if port != (scheme == "https" ? 443 : 80) { result += ":\(port)" }
        }
        return result
    }

    private static func splitPort(
        _ bytes: ArraySlice<UInt8>
    ) throws(DownloadError) -> (host: ArraySlice<UInt8>, port: ArraySlice<UInt8>) {
        if bytes.first == .openBracket {
            guard let close = bytes.firstIndex(of: .closeBracket) else {
                throw invalid("The IPv6 address in the URL has no closing bracket.")
            }
            let after = bytes[(close + 1)...]
            guard after.isEmpty || after.first == .colon else {
                throw invalid("Only a port may follow the IPv6 address in the URL.")
            }
            return (bytes[...close], after.dropFirst())
        }
        guard let colon = bytes.firstIndex(of: .colon) else { return (bytes, []) }
        return (bytes[..<colon], bytes[(colon + 1)...])
    }

    /// `[v6]` or `[v6%25zone]` (RFC 3986 section 3.2.2, RFC 6874).
    private static func literal(_ bytes: ArraySlice<UInt8>) throws(DownloadError) -> String {
        let inside = String(decoding: bytes.dropFirst().dropLast(), as: UTF8.self)
        let parts = inside.split(separator: "%", maxSplits: 1, omittingEmptySubsequences: false)
        var parsed = in6_addr()
        guard let address = parts.first, inet_pton(AF_INET6, String(address), &parsed) == 1 else {
            throw invalid("The brackets in the URL do not hold an IPv6 address.")
        }
        guard parts.count == 2 else { return "[\(address.lowercased())]" }
        let zone = parts[1].hasPrefix("25") && parts[1].utf8.count > 2 ? parts[1].dropFirst(2) : parts[1]
        guard !zone.isEmpty, zone.utf8.allSatisfy(\.isUnreserved) else {
            throw invalid("The zone of the IPv6 address in the URL is not valid.")
        }
        return "[\(address.lowercased())%25\(zone)]"
    }

    /// A name or an IPv4 address, in ASCII and lower case.
    private static func registeredName(_ bytes: ArraySlice<UInt8>) throws(DownloadError) -> String {
        let bad = "The host of the URL is not a valid name."
        guard let decoded = String(validating: bytes.percentDecoded, as: UTF8.self) else { throw invalid(bad) }
        var name = decoded
        if !name.utf8.allSatisfy({ $0 < 0x80 }) {
            // Characters that must not reach the IDNA mapping, because they would become another part of the URL.
            let forbidden = " !\"#$%&'()*+,/:;<=>?@[\\]^`{|}"
            guard !name.unicodeScalars.contains(where: { forbidden.unicodeScalars.contains($0) }),
                let encoded = URLComponents(string: "http://\(name)/")?.encodedHost
            else { throw invalid(bad) }
            name = encoded
        }
        name = name.lowercased()
        guard name.utf8.allSatisfy(\.isUnreserved) else { throw invalid(bad) }
        var labels = name.split(separator: ".", omittingEmptySubsequences: false)
        if labels.count > 1, labels.last == "" { labels.removeLast() }
        guard name.utf8.count <= 254, labels.allSatisfy({ (1...63).contains($0.utf8.count) }) else {
            throw invalid(bad)
        }
        return name
    }

    // MARK: Bytes

    private static func trimmed(_ text: String) -> ArraySlice<UInt8> {
        func isBlank(_ byte: UInt8) -> Bool { byte == 0x20 || (0x09...0x0d).contains(byte) }
        let bytes = Array(text.utf8)[...]
        let rest = bytes.drop(while: isBlank)
        return rest[..<((rest.lastIndex { !isBlank($0) }).map { $0 + 1 } ?? rest.startIndex)]
    }

    /// Percent-encodes all bytes except unreserved characters, sub-delimiters, `extra` and existing percent-encoding.
    private static func encode(_ bytes: ArraySlice<UInt8>, extra: String) -> String {
        var result: [UInt8] = []
        result.reserveCapacity(bytes.count)
        for index in bytes.indices {
            let byte = bytes[index]
            let stands =
                byte == .percent
                ? bytes.percentValue(at: index) != nil
                : byte.isUnreserved || "!$&'()*+,;=".utf8.contains(byte) || extra.utf8.contains(byte)
            if stands { result.append(byte) } else { result.appendPercentEncoded(byte) }
        }
        return String(decoding: result, as: UTF8.self)
    }

    private static func invalid(_ message: String) -> DownloadError { DownloadError(.invalidURL, message) }
}

extension String {
    /// The normal form of the text as a URL: ASCII, with a host and a path, without a fragment.
    ///
    /// Whitespace at both ends is dropped. Characters outside RFC 3986 are percent-encoded as UTF-8. A `%` stays if
    /// two hexadecimal digits follow; any other becomes `%25`. A host outside ASCII becomes its IDNA A-label form
    /// (`xn--…`). Userinfo stays.
    ///
    /// - Throws: `.invalidURL` for a missing scheme or host, control characters, an invalid host or port, or more
    ///   than 64 KiB; `.unsupportedScheme` for other schemes than http and https.
    package func normalizedURL() throws(DownloadError) -> String {
        PlainURL.isNormal(self) ? self : try URLNormalizer.normalizeFully(self)
    }
}

extension UInt8 {
    fileprivate static let slash = UInt8(ascii: "/")
    fileprivate static let question = UInt8(ascii: "?")
    fileprivate static let hash = UInt8(ascii: "#")
    fileprivate static let colon = UInt8(ascii: ":")
    fileprivate static let at = UInt8(ascii: "@")
    fileprivate static let percent = UInt8(ascii: "%")
    fileprivate static let backslash = UInt8(ascii: "\\")
    fileprivate static let openBracket = UInt8(ascii: "[")
    fileprivate static let closeBracket = UInt8(ascii: "]")
}
