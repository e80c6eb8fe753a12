/// Masks the secrets of a URL before it reaches a log, an error or JSON.
package enum URLMasking {
    /// Replaces the userinfo and the values of secret query items by `***`. A query item is secret because of its
    /// name (`isSecret(name:)`), because its value is a URL with a login or a query, or because it has no name and is
    /// long. Everything else stays, so that URLs can be told apart. A fragment of `name=value` pairs is masked like a
    /// query.
    ///
    /// It works on the text, so it also masks text that is not a valid URL.
    package static func mask(_ url: String) -> String {
        // Most URLs have nothing to mask.
        let hasDelimiter = url.utf8.withContiguousStorageIfAvailable { $0.contains(where: isDelimiter) }
        if !(hasDelimiter ?? url.utf8.contains(where: isDelimiter)) { return url }
        let parts = URLParts(url)
        var masked = parts.scheme.map { "\($0)://" } ?? ""
        if parts.userinfo != nil { masked += "***@" }
        masked += parts.hostPort
        masked += parts.path
        if let query = parts.query { masked += "?" + maskQuery(query) }
        if let fragment = parts.fragment {
            masked += "#" + (fragment.utf8.contains(UInt8(ascii: "=")) ? maskQuery(fragment) : String(fragment))
        }
        return masked
    }

    private static func isDelimiter(_ byte: UInt8) -> Bool {
        byte == UInt8(ascii: "?") || byte == UInt8(ascii: "@") || byte == UInt8(ascii: "#")
    }

    /// Works on bytes: to `String`, a delimiter with a combining mark is one other `Character`.
    private static func maskQuery(_ query: Substring) -> String {
        var masked = ""
        var item = query.utf8.startIndex
        while true {
            let end = query.utf8[item...].firstIndex { $0 == UInt8(ascii: "&") || $0 == UInt8(ascii: ";") }
            masked += maskItem(query[item..<(end ?? query.utf8.endIndex)])
            guard let end else { return masked }
            item = query.utf8.index(after: end)
            masked += query[end..<item]
        }
    }

    private static func maskItem(_ item: Substring) -> String {
        guard let equals = item.utf8.firstIndex(of: UInt8(ascii: "=")) else {
            return item.utf8.count > longestBareItem ? "***" : String(item)
        }
        let (name, value) = (item[..<equals], item[item.utf8.index(after: equals)...])
        return isSecret(name: decoded(name)) || isURLWithSecrets(decoded(value)) ? "\(name)=***" : String(item)
    }

    /// Longer items without a name are masked. Tokens are longer than this.
    private static let longestBareItem = 16

    /// True for names such as `token`, `api_key`, `X-Amz-Credential`, `sig` and `accessToken`.
    ///
    /// - Parameter name: percent-decoded, in any case.
    package static func isSecret(name: String) -> Bool {
        let folded = name.lowercased()
        if providerPrefixes.contains(where: folded.hasPrefix) { return true }
        let letters = folded.filter { $0.isLetter || $0.isNumber }
        return stems.contains(where: letters.contains) || !words.isDisjoint(with: split(name))
    }

    /// Prefixes in signed URLs of storage providers, where nearly every item is part of the signature.
    private static let providerPrefixes = ["x-amz-", "x-goog-", "x-oss-", "x-cos-", "x-obs-", "q-sign", "q-ak", "hdn"]
    /// Secret anywhere in a name, however its words are separated.
    private static let stems = [
        "token", "secret", "passw", "passphrase", "signature", "credential", "apikey", "accesskey", "authkey",
        "privatekey",
        "sharedkey", "keypair", "authoriz", "authentic", "session", "jwt", "hmac", "bearer", "accessid",
    ]
    /// Secret only as a whole word of a name. Inside another word they are harmless (`monkey`, `design`, `author`).
    private static let words: Set<String> = [
        "key", "keys", "sig", "sign", "sgn", "pass", "pwd", "pw", "pin", "otp", "auth", "oauth", "cred", "creds",
        "login",
        "sid", "policy", "hash", "md5", "sas", "ticket", "nonce", "verify", "cookie", "csrf", "xsrf",
    ]

    /// The words of `accessKey`, `access_key` and `ACCESS-KEY`, in lower case.
    private static func split(_ name: String) -> [String] {
        var words: [String] = [""]
        var last: Character = "_"
        for character in name {
            let isSeparator = !character.isLetter && !character.isNumber
            if isSeparator || (character.isUppercase && last.isLowercase) { words.append("") }
            if !isSeparator { words[words.count - 1] += character.lowercased() }
            last = character
        }
        return words
    }

    private static func isURLWithSecrets(_ value: String) -> Bool {
        guard let separator = value.range(of: "://") else { return false }
        return value[separator.upperBound...].contains { $0 == "@" || $0 == "?" || $0 == "#" }
    }

    /// Decodes twice, because a URL inside a URL may be encoded twice.
    private static func decoded(_ text: Substring) -> String {
        guard text.utf8.contains(UInt8(ascii: "%")) else { return String(text) }
        return decodedOnce(decodedOnce(text)[...])
    }

    private static func decodedOnce(_ text: Substring) -> String {
        var bytes: [UInt8] = []
        var rest = text.utf8[...]
        while let byte = rest.popFirst() {
            let pair = rest.prefix(2)
            if byte == UInt8(ascii: "%"), pair.count == 2, let code = UInt8(String(Substring(pair)), radix: 16) {
                bytes.append(code)
                rest = rest.dropFirst(2)
            } else {
                bytes.append(byte)
            }
        }
        return String(decoding: bytes, as: UTF8.self)
    }
}
