import FKMiddleware
import Foundation

/// The address of a proxy, as an option or a variable contains it: `[scheme://][user[:password]@]host[:port]`.
package struct ProxyAddress: Sendable, Hashable {
    package static let schemes = ["http", "https", "socks4", "socks4a", "socks5", "socks5h"]

    /// The host as written; an IPv6 address has its brackets.
    package var host: String
    /// The port; nil for the usual one of its scheme.
    package var port: Int?

    /// For messages: host and port without scheme, user and password.
    package var shown: String { port.map { "\(host):\($0)" } ?? host }

    /// Parses an address.
    ///
    /// - Throws: the reason, as the end of a sentence.
    package init(_ text: String) throws(Fault) {
        var rest = text[...]
        if let separator = text.range(of: "://"), !text[..<separator.lowerBound].contains(":") {
            let scheme = text[..<separator.lowerBound].lowercased()
            guard Self.schemes.contains(scheme) else {
                throw Fault("its scheme '\(scheme.visible)' is not known")
            }
            rest = text[separator.upperBound...]
        }
        guard rest.unicodeScalars.allSatisfy({ $0.value > 0x20 && $0.value != 0x7f }) else {
            throw Fault("it holds a blank or a control character")
        }
        if let at = rest.lastIndex(of: "@") {
            // Libraries disagree where the host begins.
            if let raw = rest[..<at].first(where: { "@/?#".contains($0) }) {
                let code = ["@": "%40", "/": "%2F", "?": "%3F"][raw] ?? "%23"
                throw Fault("its user name or password has a '\(raw)', which is written as \(code)")
            }
            rest = rest[rest.index(after: at)...]
        }
        rest = rest.prefix { $0 != "/" && $0 != "?" && $0 != "#" }
        var end = rest.endIndex
        if rest.first == "[" {
            guard let bracket = rest.firstIndex(of: "]") else { throw Fault("its address has no ']'") }
            end = rest.index(after: bracket)
        } else if let colon = rest.firstIndex(of: ":") {
            end = colon
        }
        host = String(rest[..<end])
        guard !host.isEmpty, host != "[]" else { throw Fault("it has no host") }
        let tail = rest[end...]
        guard !tail.isEmpty else { return }
        let digits = tail.dropFirst().utf8
        guard tail.first == ":", (1...5).contains(digits.count), digits.allSatisfy({ (0x30...0x39).contains($0) }),
            let port = Int(tail.dropFirst()), (1...65_535).contains(port)
        else { throw Fault("its port '\(String(tail.dropFirst()).visible)' is not a number from 1 to 65535") }
        self.port = port
    }

    /// A sentence about a text that is not a valid address; nil for a valid or empty one. It has no user and no password.
    package static func fault(in text: String) -> String? {
        guard !text.isEmpty else { return nil }
        do throws(Fault) {
            _ = try ProxyAddress(text)
            return nil
        } catch {
            return "'\(masked(text).visible)' is not a proxy: \(error.reason)"
        }
    }

    /// True if the text has a user; false for nil.
    package static func hasLogin(_ text: String?) -> Bool { text?.contains("@") == true }

    /// The text without user and password, also if it is not a valid address.
    package static func masked(_ text: String) -> String {
        guard let at = text.lastIndex(of: "@") else { return text }
        let scheme = text.range(of: "://").flatMap { $0.upperBound <= at ? text[..<$0.upperBound] : nil } ?? ""
        return "\(scheme)***\(text[at...])"
    }

    /// The reason why a text is not a valid address.
    package struct Fault: Error, Hashable {
        /// Completes a sentence about the proxy.
        package var reason: String
        fileprivate init(_ reason: String) { self.reason = reason }
    }

    /// True if the environment has a proxy for any URL.
    package static var isInEnvironment: Bool {
        let names: [String] = ["http_proxy", "https_proxy", "HTTPS_PROXY", "all_proxy", "ALL_PROXY"]
        return names.contains { getenv($0) != nil }
    }

    /// The proxy of a transfer, as libcurl chooses it: the option, else the variable of the URL's scheme, and none
    /// for hosts in `no_proxy`.
    ///
    /// - Parameter option: nil uses the environment; an empty text uses no proxy.
    package static func text(option: String?, url: String, environment: [String: String]) -> String? {
        if option?.isEmpty == true { return nil }
        let origin = URLOrigin(url)
        let names = origin?.scheme == "https" ? ["https_proxy", "HTTPS_PROXY"] : ["http_proxy"]
        let variable = (names + ["all_proxy", "ALL_PROXY"]).lazy.compactMap { environment[$0] }.first { !$0.isEmpty }
        guard let text = option ?? variable else { return nil }
        let spared = ["no_proxy", "NO_PROXY"].lazy.compactMap { environment[$0] }.first { !$0.isEmpty } ?? ""
        return isSpared(origin?.host ?? "", by: spared) ? nil : text
    }

    /// A sentence for the error of a transfer without a response; empty without a proxy.
    package static func note(_ text: String?) -> String {
        guard let text, let proxy = try? ProxyAddress(text) else { return "" }
        return " The request went through the proxy \(proxy.shown)."
    }

    /// True if the list names the host: itself, a domain above it, or a network of its address (`10.0.0.0/8`, `fd00::/8`).
    private static func isSpared(_ host: String, by list: String) -> Bool {
        let host = host.lowercased()
        let address = IPBytes(host)
        return list.lowercased().split(whereSeparator: { $0 == "," || $0 == " " }).contains { entry in
            if entry == "*" { return true }
            if let address { return address.isIn(entry) }
            let name = entry.first == "." ? entry.dropFirst() : entry
            let end = name.last == "." ? name.dropLast() : name
            return host == end || host.hasSuffix(".\(end)")
        }
    }

    /// The bytes of a numeric address, 4 or 16.
    private struct IPBytes {
        let bytes: [UInt8]

        /// nil for a name.
        init?(_ host: some StringProtocol) {
            let text = host.hasPrefix("[") && host.hasSuffix("]") ? String(host.dropFirst().dropLast()) : String(host)
            var four = in_addr()
            if inet_pton(AF_INET, text, &four) == 1 {
                bytes = withUnsafeBytes(of: &four) { Array($0) }
                return
            }
            var six = in6_addr()
            guard inet_pton(AF_INET6, text, &six) == 1 else { return nil }
            bytes = withUnsafeBytes(of: &six) { Array($0) }
        }

        /// True for an entry that is this address or a network with it. A network of 0 bits is the address alone, as for
        /// libcurl.
        func isIn(_ entry: some StringProtocol) -> Bool {
            let parts = entry.split(separator: "/", maxSplits: 1, omittingEmptySubsequences: false)
            guard let network = IPBytes(parts[0]), network.bytes.count == bytes.count else { return false }
            guard parts.count == 2 else { return network.bytes == bytes }
            guard let bits = Int(parts[1]), (0...bytes.count * 8).contains(bits) else { return false }
            if bits == 0 { return network.bytes == bytes }
            return (0..<bits).allSatisfy { bit in
                (bytes[bit / 8] ^ network.bytes[bit / 8]) & (0x80 >> (bit % 8)) == 0
            }
        }
    }
}
