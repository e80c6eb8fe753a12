import FKMiddleware

/// Fields as they are given in an option or a list.
extension HeaderField {
    /// Header fields that the transfer sets itself. Other values would break resuming or the message's framing.
    private static let reserved: Set<String> = [
        "range", "if-range", "accept-encoding", "content-length", "transfer-encoding", "te", "connection", "upgrade",
        "expect",
    ]
    /// The lower-case names of the fields that are always secret.
    package static let alwaysSecret: Set<String> = ["authorization", "cookie", "proxy-authorization"]
    /// True for the name of a field that is always secret: one of `alwaysSecret`, or a name that looks like one, such as
    /// `X-Api-Key`.
    package static func isSecret(_ name: String) -> Bool {
        let name = name.lowercased()
        return !usual.contains(name) && (alwaysSecret.contains(name) || name.isSecretName)
    }
    /// The fields of most requests, whose names need no closer look.
    private static let usual = harmless.union([
        "range", "if-range", "if-none-match", "if-modified-since", "accept-encoding",
    ])
    /// Fields that a task may mark as secret although their values are places, which messages name.
    private static let places: Set<String> = ["referer", "origin", "host"]
    /// The values to mask in messages if a task sends these fields.
    ///
    /// - Parameter marked: the lower-case names of the fields that the task marks as secret.
    package static func secretValues(of fields: some Sequence<HeaderField>, marked: Set<String>) -> Set<String> {
        fields.reduce(into: []) { values, field in
            let name = field.name.lowercased()
            guard isSecret(name) || marked.contains(name) && !places.contains(name) else { return }
            values.formUnion(SecretBook.values(ofField: field.value, partsFrom: 6))
        }
    }
    /// Header fields without secrets, which therefore follow a redirect to another origin.
    private static let harmless: Set<String> = [
        "accept", "accept-language", "user-agent", "cache-control", "pragma", "dnt", "from",
    ]

    /// Parses `Name: value`. Whitespace around the value is dropped; `Name:` sends an empty value.
    ///
    /// - Throws: `Invalid` with the reason. It may contain the name but never the value, which may be a secret.
    package static func parse(_ text: String) throws(Invalid) -> HeaderField {
        guard let colon = text.utf8.firstIndex(of: UInt8(ascii: ":")) else {
            throw Invalid(reason: "a header is written 'Name: value'")
        }
        let name = String(text[..<colon])
        guard name.isFieldName else {
            throw Invalid(reason: "a header's name consists of letters, digits and !#$%&'*+-.^_`|~")
        }
        var value = text[text.index(after: colon)...]
        // CR, LF and NUL could end the field and start another one (RFC 9110 section 5.5).
        guard !value.unicodeScalars.contains(where: { ($0.value < 0x20 && $0 != "\t") || $0.value == 0x7f }) else {
            throw Invalid(reason: "the value of header '\(name)' holds a line break or another control character")
        }
        while value.first == " " || value.first == "\t" { value.removeFirst() }
        while value.last == " " || value.last == "\t" { value.removeLast() }
        guard !reserved.contains(name.lowercased()) else {
            throw Invalid(reason: "header '\(name)' is set by the transfer itself and cannot be given")
        }
        return HeaderField(name, String(value))
    }

    /// The lower-case names of the fields that must not follow a redirect to another origin: all except the harmless
    /// ones.
    package static func secretNames(of fields: [HeaderField]) -> [String] {
        Set(fields.map { $0.name.lowercased() }).subtracting(harmless).sorted()
    }
}

extension HeaderField {
    /// A header that cannot be sent.
    package struct Invalid: Error, Hashable {
        /// The reason, for a message. It never contains the value.
        package var reason: String
    }
}
