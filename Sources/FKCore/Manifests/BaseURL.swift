import Foundation

/// The URL of the folder that the names of a list are relative to.
struct BaseURL: Sendable {
    private let folder: String
    /// The query with its question mark. It is appended to every name.
    private let query: String

    /// - Parameter text: the URL, with or without a final slash. A fragment is ignored.
    init(_ text: String) {
        let plain = text.prefix { $0 != "#" }
        let path = plain.prefix { $0 != "?" }
        query = String(plain[path.endIndex...])
        folder = path.hasSuffix("/") ? String(path) : path + "/"
    }

    /// The URL of a file in the folder. Every byte of the name with a meaning in a URL is encoded.
    ///
    /// - Parameter name: a path with `/` between folders.
    func url(of name: String) -> String {
        let encoded = Self.encoded(name)
        return query.isEmpty ? folder + encoded : folder + encoded + query
    }

    /// The URL for a relative reference of a list.
    func resolve(_ reference: String) -> String {
        guard reference.hasPrefix("/"), let scheme = folder.range(of: "://") else { return below(reference) }
        if reference.hasPrefix("//") { return folder[..<scheme.lowerBound] + ":" + reference }
        return folder[..<scheme.upperBound] + folder[scheme.upperBound...].prefix { $0 != "/" } + reference
    }

    /// Joins a relative path. `./` and `../` in front of it lead to this folder and the one above it, and not above the host.
    private func below(_ reference: String) -> String {
        var (folder, rest) = (folder[...], reference[...])
        let root = folder.range(of: "://").map { folder[$0.upperBound...].firstIndex(of: "/") ?? folder.endIndex }
        while true {
            if rest.hasPrefix("./") {
                rest = rest.dropFirst(2)
            } else if rest.hasPrefix("../"), let root {
                rest = rest.dropFirst(3)
                let parent = folder.dropLast()
                if let slash = parent.lastIndex(of: "/"), slash >= root { folder = parent[...slash] }
            } else {
                return String(folder + rest)
            }
        }
    }

    /// A path encoded for a URL: all bytes except unreserved ones and slashes are percent-encoded.
    static func encoded(_ path: String) -> String {
        func isFree(_ byte: UInt8) -> Bool {
            byte.isASCIILetter || byte.isASCIIDigit
                || byte == UInt8(ascii: "-") || byte == UInt8(ascii: ".") || byte == UInt8(ascii: "_")
                || byte == UInt8(ascii: "~")
                || byte == UInt8(ascii: "/")
        }
        if path.utf8.allSatisfy(isFree) { return path }
        var bytes: [UInt8] = []
        bytes.reserveCapacity(path.utf8.count)
        for byte in path.utf8 {
            if isFree(byte) {
                bytes.append(byte)
            } else {
                bytes.appendPercentEncoded(byte)
            }
        }
        return String(decoding: bytes, as: UTF8.self)
    }
}

extension String {
    /// The folder of a list's URL, without a query.
    package var urlFolder: String {
        let path = prefix { $0 != "?" && $0 != "#" }
        return String(path[...(path.lastIndex(of: "/") ?? path.startIndex)])
    }
}
