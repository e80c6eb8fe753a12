/// URLs as they may be shown: passwords and query values can be secrets, the rest is what a person needs to see.
enum MaskedURL {
    /// The text with userinfo and query values replaced by `***`. Works on any text: what is not a URL comes back as it is.
    static func text(_ url: String) -> String {
        guard let scheme = url.range(of: "://") else { return url }
        let rest = url[scheme.upperBound...]
        let authorityEnd = rest.firstIndex { $0 == "/" || $0 == "?" || $0 == "#" } ?? rest.endIndex
        var authority = String(rest[..<authorityEnd])
        if let at = authority.lastIndex(of: "@") { authority = "***" + authority[at...] }
        return url[..<scheme.upperBound] + authority + maskQuery(rest[authorityEnd...])
    }

    private static func maskQuery(_ text: Substring) -> String {
        guard let mark = text.firstIndex(of: "?") else { return String(text) }
        let end = text[mark...].firstIndex(of: "#") ?? text.endIndex
        let pairs = text[text.index(after: mark)..<end].split(separator: "&", omittingEmptySubsequences: false)
        let masked = pairs.map { pair in
            pair.firstIndex(of: "=").map { pair[...$0] + "***" } ?? pair
        }
        return text[...mark] + masked.joined(separator: "&") + text[end...]
    }
}
