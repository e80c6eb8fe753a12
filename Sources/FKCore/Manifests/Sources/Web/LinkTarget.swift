import FKMiddleware
import FKTransport

/// The absolute URL of a link of a page (RFC 3986 section 5).
struct LinkTarget {
    /// The URL without its fragment, percent-encoded.
    let url: String
    let hasQuery: Bool
    /// True if the link names a part of the page only.
    let isFragment: Bool

    /// The URL of the page that has the links.
    struct Base {
        fileprivate let scheme: String
        /// The scheme and the host.
        fileprivate let site: String
        fileprivate let path: String
        /// The URL of the page's folder, with a final slash.
        fileprivate let folder: String

        /// Reads the URL of a page, which is normalized; nil for one without a scheme.
        init?(_ url: String) {
            let parts = URLParts(url)
            guard let scheme = parts.scheme else { return nil }
            self.scheme = String(scheme)
            site = "\(scheme)://\(parts.hostPort)"
            path = String(parts.path)
            folder = site + LinkTarget.withoutDots(String(path[..<(path.lastIndex(of: "/") ?? path.startIndex)]) + "/")
        }
    }

    /// Resolves a link; nil for other schemes than http and https, and for what is no URL.
    init?(_ reference: [UInt8], base: Base) {
        if Self.isPlainName(reference) {
            // Most links of a listing. Nothing of it would change.
            url = base.folder + String(decoding: reference, as: UTF8.self)
            hasQuery = false
            isFragment = false
            return
        }
        var text = reference[...]
        isFragment = text.first == UInt8(ascii: "#")
        if let hash = text.firstIndex(of: UInt8(ascii: "#")) { text = text[..<hash] }
        let question = text.firstIndex(of: UInt8(ascii: "?"))
        hasQuery = question != nil
        let path = text[..<(question ?? text.endIndex)]
        let query = text[path.endIndex...]
        let site = base.site
        let result: String
        if let colon = path.firstIndex(of: UInt8(ascii: ":")), Self.isScheme(path[..<colon]) {
            let own = String(decoding: path[..<colon], as: UTF8.self).lowercased()
            guard own == "http" || own == "https", path[colon...].dropFirst().starts(with: "//".utf8) else {
                return nil
            }
            result = Self.plain(Self.encoded(text))
        } else if path.starts(with: "//".utf8) {
            result = Self.plain("\(base.scheme):" + Self.encoded(text))
        } else if path.first == UInt8(ascii: "/") {
            result = site + Self.withoutDots(Self.encoded(path)) + Self.encoded(query)
        } else if path.isEmpty {
            result = site + base.path + Self.encoded(query)
        } else {
            let folder = base.path[..<(base.path.lastIndex(of: "/") ?? base.path.startIndex)] + "/"
            result = site + Self.withoutDots(folder + Self.encoded(path)) + Self.encoded(query)
        }
        guard let url = try? result.normalizedURL() else { return nil }
        self.url = url
    }

    /// True for a name below the page's folder of unreserved characters alone (RFC 3986 section 2.3), with or without a final slash.
    private static func isPlainName(_ bytes: [UInt8]) -> Bool {
        let name = bytes.last == UInt8(ascii: "/") ? bytes.dropLast() : bytes[...]
        // `.` and `..` are no names.
        return name.count <= 255 && name.contains { $0 != UInt8(ascii: ".") } && name.allSatisfy(\.isUnreserved)
    }

    private static func isScheme(_ bytes: ArraySlice<UInt8>) -> Bool {
        guard let first = bytes.first, first.isASCIILetter else { return false }
        return bytes.allSatisfy { $0.isASCIILetter || $0.isASCIIDigit || "+-.".utf8.contains($0) }
    }

    /// Percent-encodes the bytes that no URL has, so that the text is ASCII.
    private static func encoded(_ bytes: ArraySlice<UInt8>) -> String {
        var result: [UInt8] = []
        result.reserveCapacity(bytes.count)
        for byte in bytes {
            if byte > 0x20, byte < 0x7f, byte != UInt8(ascii: "\\") {
                result.append(byte)
            } else {
                result.appendPercentEncoded(byte)
            }
        }
        return String(decoding: result, as: UTF8.self)
    }

    /// An absolute URL without dot parts in its path.
    private static func plain(_ url: String) -> String {
        let parts = URLParts(url)
        guard let scheme = parts.scheme else { return url }
        let path = parts.path.isEmpty ? "/" : withoutDots(String(parts.path))
        return "\(scheme)://\(parts.hostPort)\(path)" + (parts.query.map { "?\($0)" } ?? "")
    }

    /// Removes `.` and `..` (RFC 3986 section 5.2.4). Encoded ones stay: servers read them in different ways.
    static func withoutDots(_ path: String) -> String {
        var parts: [Substring] = []
        let all = path.dropFirst().split(separator: "/", omittingEmptySubsequences: false)
        for (index, part) in all.enumerated() {
            let isLast = index == all.count - 1
            switch part {
            case ".": if isLast { parts.append("") }
            case "..":
                _ = parts.popLast()
                if isLast { parts.append("") }
            default: parts.append(part)
            }
        }
        return "/" + parts.joined(separator: "/")
    }
}
