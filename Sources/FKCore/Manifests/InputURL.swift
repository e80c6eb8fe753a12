import FKMiddleware
import Foundation

extension String {
    /// Why the text is no URL that can be tried; nil if it is one. A first check, which finds typing errors before anything starts. The
    /// builder encodes URLs and applies the detailed rules.
    package var urlFault: String? {
        if isPlainURL { return nil }
        if allSatisfy({ $0 == " " || $0 == "\t" }) { return "the URL is empty" }
        if utf8.count > 65_536 { return "the URL is longer than 65,536 bytes" }
        guard let separator = range(of: "://") else {
            if let scheme = ["https:", "http:"].first(where: { lowercased().hasPrefix($0) }) {
                return "'\(masked.visible)' does not begin with \(scheme)//"
            }
            if let scheme = ["magnet", "torrent"].first(where: { lowercased().hasPrefix("\($0):") }) {
                return "\(scheme) links are for BitTorrent; http and https are supported"
            }
            let rest = String(drop { $0 == "/" }.prefix(60))
            return "'\(masked.visible)' has no scheme; write https://\(rest.masked.visible)"
        }
        let scheme = self[..<separator.lowerBound].lowercased()
        guard scheme == "http" || scheme == "https" else {
            return "'\(masked.visible)': scheme '\(scheme.visible)' is not supported; http and https are"
        }
        if unicodeScalars.contains(where: { $0.value < 0x20 || $0.value == 0x7f }) {
            return "'\(masked.visible)' holds a control character"
        }
        let rest = self[separator.upperBound...]
        if let blank = rest.firstIndex(where: { $0 == " " || $0 == "\t" }) {
            let second = rest[blank...].drop { $0 == " " || $0 == "\t" }
            if second.lowercased().hasPrefix("http://") || second.lowercased().hasPrefix("https://") {
                return "'\(masked.visible)' has a second URL behind a blank: give each URL by itself"
            }
        }
        let authority = self[separator.upperBound...].prefix { $0 != "/" && $0 != "?" && $0 != "#" }
        let host = authority.lastIndex(of: "@").map { authority[authority.index(after: $0)...] } ?? authority
        guard let first = host.first, first != ":" else { return "'\(masked.visible)' has no host" }
        return nil
    }

    /// True for a common URL without faults. It is a fast path, because a list may contain a hundred thousand URLs.
    var isPlainURL: Bool {
        utf8.withContiguousStorageIfAvailable { Self.isPlainURL($0) } ?? false
    }

    private static func isPlainURL(_ bytes: UnsafeBufferPointer<UInt8>) -> Bool {
        let prefix = bytes.starts(with: "https://".utf8) ? 8 : bytes.starts(with: "http://".utf8) ? 7 : 0
        guard prefix > 0, bytes.count <= 65_536 else { return false }
        let rest = bytes.dropFirst(prefix)
        guard let first = rest.first, first != UInt8(ascii: ":") else { return false }
        let authority = rest.prefix { $0 != UInt8(ascii: "/") && $0 != UInt8(ascii: "?") && $0 != UInt8(ascii: "#") }
        return !authority.isEmpty && !authority.contains(UInt8(ascii: "@"))
            && rest.allSatisfy { $0 > 0x20 && $0 < 0x7f }
    }
}
