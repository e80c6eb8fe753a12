import FKMiddleware

/// Reads a header field that somebody has written as one line, such as that of an option or a list.
package enum HeaderField {
    /// Header fields that the transfer itself decides: giving them would break resuming or the message's framing.
    private static let reserved: Set<String> = [
        "range", "if-range", "accept-encoding", "content-length", "transfer-encoding", "te", "connection", "upgrade",
        "expect",
    ]
    /// Header fields that tell nothing worth hiding and so follow a redirect to another origin.
    private static let harmless: Set<String> = [
        "accept", "accept-language", "user-agent", "cache-control", "pragma", "dnt", "from",
    ]

    /// Reads `Name: value`; blanks around the value are dropped, `Name:` sends an empty value.
    ///
    /// - Throws: what is wrong with it. The message holds the name at most: a value may be a secret.
    package static func parse(_ text: String) throws(InvalidHeader) -> ResponseHead.Field {
        guard let colon = text.utf8.firstIndex(of: UInt8(ascii: ":")) else {
            throw InvalidHeader(reason: "a header is written 'Name: value'")
        }
        let name = String(text[..<colon])
        guard HTTPToken.isFieldName(name) else {
            throw InvalidHeader(reason: "a header's name consists of letters, digits and !#$%&'*+-.^_`|~")
        }
        var value = text[text.index(after: colon)...]
        // CR, LF and NUL would end the field and begin another one (RFC 9110 section 5.5).
        guard !value.unicodeScalars.contains(where: { ($0.value < 0x20 && $0 != "\t") || $0.value == 0x7f }) else {
            throw InvalidHeader(reason: "the value of header '\(name)' holds a line break or another control character")
        }
        while value.first == " " || value.first == "\t" { value.removeFirst() }
        while value.last == " " || value.last == "\t" { value.removeLast() }
        guard !reserved.contains(name.lowercased()) else {
            throw InvalidHeader(reason: "header '\(name)' is set by the transfer itself and cannot be given")
        }
        return ResponseHead.Field(name, String(value))
    }

    /// The names, in lower case, that must not follow a redirect to another origin: all but the well-known harmless
    /// ones.
    package static func secretNames(of fields: [ResponseHead.Field]) -> [String] {
        Set(fields.map { $0.name.lowercased() }).subtracting(harmless).sorted()
    }
}

/// A header that cannot be sent.
package struct InvalidHeader: Error, Hashable {
    /// What is wrong with it, for a message. Never holds the value.
    package var reason: String
}
