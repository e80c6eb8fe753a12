import FKMiddleware
import Foundation

/// A first check of a URL, which finds typing errors before anything starts. The builder encodes URLs and applies the
/// detailed rules.
package enum InputURL {
    /// The fault of a URL; nil if it can be tried.
    package static func fault(in text: String) -> String? {
        if isPlain(text) { return nil }
        if text.allSatisfy({ $0 == " " || $0 == "\t" }) { return "the URL is empty" }
        if text.utf8.count > 65_536 { return "the URL is longer than 65,536 bytes" }
        guard let separator = text.range(of: "://") else {
            if let scheme = ["https:", "http:"].first(where: { text.lowercased().hasPrefix($0) }) {
                return "'\(shown(text))' does not begin with \(scheme)//"
            }
            if let scheme = ["magnet", "torrent"].first(where: { text.lowercased().hasPrefix("\($0):") }) {
                return "\(scheme) links are for BitTorrent; http and https are supported"
            }
            let rest = String(text.drop { $0 == "/" }.prefix(60))
            return "'\(shown(text))' has no scheme; write https://\(shown(rest))"
        }
        let scheme = text[..<separator.lowerBound].lowercased()
        guard scheme == "http" || scheme == "https" else {
            return "'\(shown(text))': scheme '\(Escaping.visible(scheme))' is not supported; http and https are"
        }
        if text.unicodeScalars.contains(where: { $0.value < 0x20 || $0.value == 0x7f }) {
            return "'\(shown(text))' holds a control character"
        }
        let rest = text[separator.upperBound...]
        if let blank = rest.firstIndex(where: { $0 == " " || $0 == "\t" }) {
            let second = rest[blank...].drop { $0 == " " || $0 == "\t" }
            if second.lowercased().hasPrefix("http://") || second.lowercased().hasPrefix("https://") {
                return "'\(shown(text))' has a second URL behind a blank: give each URL by itself"
            }
        }
        let authority = text[separator.upperBound...].prefix { $0 != "/" && $0 != "?" && $0 != "#" }
        let host = authority.lastIndex(of: "@").map { authority[authority.index(after: $0)...] } ?? authority
        guard let first = host.first, first != ":" else { return "'\(shown(text))' has no host" }
        return nil
    }

    /// True for a common URL without faults. It is a fast path, because a list may contain a hundred thousand URLs.
    static func isPlain(_ text: String) -> Bool {
        text.utf8.withContiguousStorageIfAvailable { isPlain(bytes: $0) } ?? false
    }

    private static func isPlain(bytes: UnsafeBufferPointer<UInt8>) -> Bool {
        let prefix = bytes.starts(with: "https://".utf8) ? 8 : bytes.starts(with: "http://".utf8) ? 7 : 0
        guard prefix > 0, bytes.count <= 65_536 else { return false }
        let rest = bytes.dropFirst(prefix)
        guard let first = rest.first, first != UInt8(ascii: ":") else { return false }
        let authority = rest.prefix { $0 != UInt8(ascii: "/") && $0 != UInt8(ascii: "?") && $0 != UInt8(ascii: "#") }
        return !authority.isEmpty && !authority.contains(UInt8(ascii: "@"))
            && rest.allSatisfy { $0 > 0x20 && $0 < 0x7f }
    }

    private static func shown(_ text: String) -> String { Escaping.visible(URLMasking.mask(text)) }
}
