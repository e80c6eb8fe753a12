import FKMiddleware
import Foundation

/// The address of a proxy, as an option or a variable contains it: `[scheme://][user[:password]@]host[:port]`.
package struct ProxyAddress: Sendable, Hashable {
    /// The supported schemes.
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
        if let separator = text.range(of: "://") {
            let scheme = text[..<separator.lowerBound].lowercased()
            guard Self.schemes.contains(scheme) else {
                throw Fault("its scheme '\(Escaping.visible(scheme))' is not known")
            }
            rest = text[separator.upperBound...]
        }
        guard rest.unicodeScalars.allSatisfy({ $0.value > 0x20 && $0.value != 0x7f }) else {
            throw Fault("it holds a blank or a control character")
        }
        rest = rest.prefix { $0 != "/" && $0 != "?" && $0 != "#" }
        if let at = rest.lastIndex(of: "@") { rest = rest[rest.index(after: at)...] }
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
        else { throw Fault("its port '\(Escaping.visible(String(tail.dropFirst())))' is not a number from 1 to 65535") }
        self.port = port
    }

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
        let spared = environment["no_proxy"] ?? environment["NO_PROXY"] ?? ""
        return isSpared(origin?.host ?? "", by: spared) ? nil : text
    }

    /// A sentence for the error of a transfer without a response; empty without a proxy.
    package static func note(_ text: String?) -> String {
        guard let text, let proxy = try? ProxyAddress(text) else { return "" }
        return " The request went through the proxy \(proxy.shown)."
    }

    private static func isSpared(_ host: String, by list: String) -> Bool {
        let host = host.lowercased()
        return list.lowercased().split(whereSeparator: { $0 == "," || $0 == " " }).contains { entry in
            let name = entry.first == "." ? entry.dropFirst() : entry
            return name == "*" || host == name || host.hasSuffix(".\(name)")
        }
    }
}
