/// Takes the secrets out of a URL before it reaches a log, an error or JSON.
package enum URLMasking {
    /// Replaces the userinfo by `***` and the value of every query parameter by `***`. The names of the parameters,
    /// the path and the fragment stay, so that a person still recognises the URL.
    ///
    /// Works on the text, so that it also masks what is not a valid URL.
    package static func mask(_ url: String) -> String {
        // Nothing to hide in most of them.
        if !url.utf8.contains(where: { $0 == UInt8(ascii: "?") || $0 == UInt8(ascii: "@") }) { return url }
        let parts = URLParts(url)
        var masked = parts.scheme.map { "\($0)://" } ?? ""
        if parts.userinfo != nil { masked += "***@" }
        masked += parts.hostPort
        masked += parts.path
        if let query = parts.query { masked += "?" + maskQuery(query) }
        if let fragment = parts.fragment { masked += "#\(fragment)" }
        return masked
    }

    private static func maskQuery(_ query: Substring) -> String {
        query.split(separator: "&", omittingEmptySubsequences: false)
            .map { parameter in
                guard !parameter.isEmpty else { return "" }
                guard let equals = parameter.firstIndex(of: "=") else { return "***" }
                return "\(parameter[..<equals])=***"
            }
            .joined(separator: "&")
    }
}
