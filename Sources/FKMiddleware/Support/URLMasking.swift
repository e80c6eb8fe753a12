extension String {
    /// The URL with its userinfo and the values of secret query items replaced by `***`, for logs, errors and JSON. A query item is
    /// secret because of its name (`isSecretName`), because its value is a URL with a login or a query, or because it has no name and is
    /// long. Everything else stays, so that URLs can be told apart. A fragment of `name=value` pairs is masked like a query.
    ///
    /// It works on the text, so it also masks text that is not a valid URL: a login with a raw `#`, `/` or `?`, or one without a
    /// scheme before it (`urlLogin`).
    package var masked: String {
        // Most URLs have nothing to mask.
        let hasDelimiter = utf8.withContiguousStorageIfAvailable { $0.contains(where: Self.isDelimiter) }
        if !(hasDelimiter ?? utf8.contains(where: Self.isDelimiter)) { return self }
        guard let login = urlLogin else { return Self.maskParts(self) }
        // Without the login, the rest is a URL like any other.
        let rest = Self.maskParts(String(self[..<login.lowerBound] + self[utf8.index(after: login.upperBound)...]))
        let before = utf8.distance(from: startIndex, to: login.lowerBound)
        let start = rest.utf8.index(rest.startIndex, offsetBy: before)
        return rest[..<start] + "***@" + rest[start...]
    }

    /// The login in a URL, without its `@`; nil without one. In text that is not a valid URL it is what its author may have meant as
    /// a login.
    ///
    /// | text | login |
    /// | --- | --- |
    /// | `scheme://LOGIN@host`, before the first `/`, `?` or `#` | up to the last `@` |
    /// | `scheme://name:AB@CD/EF@host.example`, where `CD` is no name of a host | up to the last `@`: a raw `@`, and a raw `/`, `?` or `#` |
    /// | `scheme://name:PART` with a port that is no number, and a later `@` | up to the last `@`: PART has a raw `/`, `?` or `#` |
    /// | `scheme://name:12/34@host.example`, where `name` has no dot | up to the last `@` before the name of a host |
    /// | `gh:OWNER/REPO@TAG` and the like: a reference of a source, with a version | none |
    /// | `name:password@host` without a scheme, and without a `/` before the colon but at the beginning | up to the last `@` |
    /// | `https//name:password@host`, a scheme without its colon | up to the last `@` |
    package var urlLogin: Range<Index>? {
        guard utf8.contains(UInt8(ascii: "@")) else { return nil }
        let bytes = utf8
        guard let separator = range(of: "://"), self[..<separator.lowerBound].utf8.allSatisfy(Self.isOfScheme) else {
            if Self.references.contains(where: hasPrefix) { return nil }
            // `https//LOGIN@host` was meant as a scheme.
            let scheme = ["https/", "http/"].first { lowercased().hasPrefix($0) }?.utf8.count ?? 0
            let rest = bytes.index(bytes.startIndex, offsetBy: scheme)
            let start = bytes[rest...].firstIndex { $0 != UInt8(ascii: "/") } ?? bytes.startIndex
            guard let at = bytes.lastIndex(of: UInt8(ascii: "@")), start < at,
                let colon = bytes[start..<at].firstIndex(of: UInt8(ascii: ":")),
                !bytes[start..<colon].contains(UInt8(ascii: "/"))
            else { return nil }
            return start..<at
        }
        let start = separator.upperBound
        let end = bytes[start...].firstIndex { $0 == 0x2f || $0 == 0x3f || $0 == 0x23 } ?? bytes.endIndex
        if let at = bytes[start..<end].lastIndex(of: UInt8(ascii: "@")) {
            // `host` may be a part of a password with a raw `@` and another raw delimiter.
            let host = self[bytes.index(after: at)..<end]
            guard bytes[start..<at].contains(UInt8(ascii: ":")), !Self.hasHost(host),
                let last = bytes[end...].lastIndex(of: UInt8(ascii: "@")),
                host.isEmpty || Self.isHostName(self[bytes.index(after: last)...].prefix { !"/?#:".contains($0) })
            else { return start..<at }
            return start..<last
        }
        let authority = self[start..<end]
        guard let at = bytes[end...].lastIndex(of: UInt8(ascii: "@")), !authority.hasPrefix("[") else { return nil }
        if let colon = authority.firstIndex(of: ":") {
            let port = authority[authority.index(after: colon)...]
            if !port.utf8.allSatisfy({ (0x30...0x39).contains($0) }) || port.utf8.count > 5 { return start..<at }
        }
        let name = authority.prefix { $0 != ":" }
        guard !name.contains("."), name.lowercased() != "localhost" else { return nil }
        let host = self[bytes.index(after: at)...].prefix { !"/?#:".contains($0) }
        return Self.isHostName(host) ? start..<at : nil
    }

    /// The beginnings of references in which a version follows an `@`.
    private static let references = ["gh:", "hf:", "oci:", "ollama:", "ia:"]

    private static func isOfScheme(_ byte: UInt8) -> Bool {
        (0x61...0x7a).contains(byte | 0x20) || (0x30...0x39).contains(byte) || "+-.".utf8.contains(byte)
    }

    /// True for an authority that can be nothing else than a host: with a dot, in brackets, or this machine.
    private static func hasHost(_ authority: Substring) -> Bool {
        authority.contains(".") || authority.hasPrefix("[") || authority.lowercased().hasPrefix("localhost")
    }

    /// True for `host.example` and `127.0.0.1`, and false for `scope` and for the version `1.2`.
    private static func isHostName(_ text: Substring) -> Bool {
        let labels = text.split(separator: ".", omittingEmptySubsequences: false)
        guard labels.count > 1, labels.allSatisfy({ !$0.isEmpty }) else { return false }
        return labels.last?.first?.isLetter == true || labels.count == 4 && labels.allSatisfy { UInt8($0) != nil }
    }

    /// The text masked as several URLs with blanks between them.
    package var wordsMasked: String {
        let words = masked.split(separator: " ", omittingEmptySubsequences: false)
        return words.map { String($0).masked }.joined(separator: " ")
    }

    /// The message with each text in single quotes masked as a URL. An apostrophe inside a word is no quote.
    package var quotesMasked: String {
        guard utf8.contains(UInt8(ascii: "'")), utf8.contains(where: Self.isDelimiter) else { return self }
        var masked = ""
        var rest = self[...]
        while let open = rest.firstIndex(of: "'") {
            let start = rest.index(after: open)
            masked += rest[..<start]
            let isOpening = open == startIndex || !self[index(before: open)].isLetter
            let close = rest[start...].indices.first { index in
                guard rest[index] == "'" else { return false }
                let next = rest[index...].dropFirst().first
                return next.map { " ,:;.)".contains($0) } ?? true
            }
            guard isOpening, let close else {
                rest = rest[start...]
                continue
            }
            masked += String(rest[start..<close]).wordsMasked + "'"
            rest = rest[rest.index(after: close)...]
        }
        return masked + rest
    }

    private static func maskParts(_ url: String) -> String {
        let parts = URLParts(url)
        var masked = parts.scheme.map { "\($0)://" } ?? ""
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
        return decoded(name).isSecretName || isURLWithSecrets(decoded(value)) ? "\(name)=***" : String(item)
    }

    /// Longer items without a name are masked. Tokens are longer than this.
    private static let longestBareItem = 16

    /// True for names such as `token`, `api_key`, `X-Amz-Credential`, `sig` and `accessToken`.
    /// The name is percent-decoded, in any case.
    package var isSecretName: Bool {
        let folded = lowercased()
        // The number of keys on a page of a bucket's listing.
        if folded == "max-keys" { return false }
        if Self.providerPrefixes.contains(where: folded.hasPrefix) { return true }
        let letters = folded.filter { $0.isLetter || $0.isNumber }
        return Self.stems.contains(where: letters.contains) || !Self.words.isDisjoint(with: Self.splitWords(self))
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
    private static func splitWords(_ name: String) -> [String] {
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
