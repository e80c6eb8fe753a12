import Foundation

/// The address of a folder in which the names of a list are.
struct BaseURL: Sendable {
    private let folder: String
    /// With its question mark; it goes behind every name.
    private let query: String

    /// - Parameter text: with or without a slash at the end. A fragment is dropped.
    init(_ text: String) {
        let plain = text.prefix { $0 != "#" }
        let path = plain.prefix { $0 != "?" }
        query = String(plain[path.endIndex...])
        folder = path.hasSuffix("/") ? String(path) : path + "/"
    }

    /// The address of a file in the folder. Every byte of the name that has a meaning in a URL is encoded.
    ///
    /// - Parameter name: a path with `/` between folders.
    func url(of name: String) -> String { folder + Self.encoded(name) + query }

    /// The address of a relative reference that a list gives.
    func resolve(_ reference: String) -> String {
        guard reference.hasPrefix("/"), let scheme = folder.range(of: "://") else { return folder + reference }
        if reference.hasPrefix("//") { return folder[..<scheme.lowerBound] + ":" + reference }
        return folder[..<scheme.upperBound] + folder[scheme.upperBound...].prefix { $0 != "/" } + reference
    }

    /// A path as it stands in a URL: all bytes but unreserved ones and slashes are percent-encoded.
    static func encoded(_ path: String) -> String {
        var bytes: [UInt8] = []
        bytes.reserveCapacity(path.utf8.count)
        for byte in path.utf8 {
            if byte.isASCIILetter || byte.isASCIIDigit || "-._~/".utf8.contains(byte) {
                bytes.append(byte)
            } else {
                PercentCoding.append(byte, to: &bytes)
            }
        }
        return String(decoding: bytes, as: UTF8.self)
    }
}
