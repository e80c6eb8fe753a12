import FKMiddleware

/// The words that name a place: `SCHEME:REST`, such as `s3://bucket/prefix` or `https://host/pub/`.
public struct SourceReference: Sendable, Hashable, CustomStringConvertible {
    /// The scheme in lower case.
    public let scheme: String
    /// The text behind the colon, as written.
    public let rest: String

    /// Reads a reference; nil for a text that has no scheme, such as a path. A scheme has at least two characters, so a drive
    /// letter is none.
    public init?(_ text: String) {
        guard let colon = text.utf8.firstIndex(of: UInt8(ascii: ":")) else { return nil }
        let scheme = text[..<colon]
        guard Self.isScheme(scheme), !text[colon...].dropFirst().isEmpty else { return nil }
        self.scheme = scheme.lowercased()
        rest = String(text[text.utf8.index(after: colon)...])
    }

    init(scheme: String, rest: String) { (self.scheme, self.rest) = (scheme, rest) }

    /// `SCHEME:REST`
    public var description: String { "\(scheme):\(rest)" }

    /// The text behind `//`, or behind the colon without it: `bucket/prefix`.
    public var path: String { rest.hasPrefix("//") ? String(rest.dropFirst(2)) : rest }

    /// True for a name that stands for one version of several files. Another version of them has other addresses.
    package var isPublication: Bool { ["hf", "doi", "zenodo"].contains(scheme) }

    /// True for a name in a bucket, which stands for one object unless all below it is asked for.
    package var namesObject: Bool { ["s3", "gs", "az"].contains(scheme) }

    /// The last part of the path that is not empty; the scheme if there is none.
    public var lastPart: String {
        path.split(separator: "/").last.map { String($0) } ?? scheme
    }

    /// An error for a malformed reference.
    ///
    /// - Parameters:
    ///   - reason: a clause without a full stop.
    ///   - form: how a reference is written.
    public func fault(_ reason: String, _ form: String) -> DownloadError {
        DownloadError(
            .invalidArgument, "'\(description.masked.visible)' is no place to list: \(reason). Write \(form).")
    }

    /// True for a scheme's letters (RFC 3986 section 3.1), at least two of them.
    static func isScheme(_ text: Substring) -> Bool {
        guard let first = text.utf8.first, first.isASCIILetter, (2...32).contains(text.utf8.count) else { return false }
        return text.utf8.allSatisfy { $0.isASCIILetter || $0.isASCIIDigit || "+-.".utf8.contains($0) }
    }
}
