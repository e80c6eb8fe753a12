import FKMiddleware

/// A link of the header field `Link` (RFC 8288): `<URL>; rel=next; pri=1`.
package struct LinkField: Sendable, Hashable {
    /// The URL as written; it may be relative.
    package var target: String
    /// The relations, in lower case.
    package var relations: [String]
    /// The other parameters, by name in lower case. The first value of a name counts.
    package var parameters: [String: String]

    /// The parameter `pri` of RFC 6249, from 1: a smaller number is better. Without one, the last.
    package var priority: Int { parameters["pri"].flatMap { Int($0) } ?? 999_999 }

    /// The largest number of links that are read.
    static let maxLinks = 1_000

    /// The links of the values of a field, in order. A malformed link ends its value.
    package static func parse(_ values: [String]) -> [LinkField] {
        var links: [LinkField] = []
        for value in values {
            var rest = Array(value.utf8)[...]
            while links.count < maxLinks, let link = next(&rest) { links.append(link) }
        }
        return links
    }

    private static func next(_ rest: inout ArraySlice<UInt8>) -> LinkField? {
        rest = rest.drop { isBlank($0) || $0 == UInt8(ascii: ",") }
        guard rest.first == UInt8(ascii: "<"), let end = rest.firstIndex(of: UInt8(ascii: ">")) else { return nil }
        var link = LinkField(
            target: String(decoding: rest[(rest.startIndex + 1)..<end], as: UTF8.self), relations: [], parameters: [:])
        rest = rest[(end + 1)...]
        while true {
            rest = rest.drop(while: isBlank)
            guard rest.first == UInt8(ascii: ";") else { break }
            rest = rest.dropFirst().drop(while: isBlank)
            let name = String(decoding: rest.prefix(while: \.isTokenByte), as: UTF8.self).lowercased()
            rest = rest.drop(while: \.isTokenByte).drop(while: isBlank)
            var value = ""
            if rest.first == UInt8(ascii: "=") {
                rest = rest.dropFirst().drop(while: isBlank)
                value = text(&rest)
            }
            if name == "rel" {
                if link.relations.isEmpty { link.relations = value.lowercased().split(separator: " ").map(String.init) }
            } else if !name.isEmpty, link.parameters[name] == nil {
                link.parameters[name] = value
            }
        }
        return link
    }

    /// A token or a quoted text.
    private static func text(_ rest: inout ArraySlice<UInt8>) -> String {
        guard rest.first == UInt8(ascii: "\"") else {
            let token = rest.prefix { $0 != UInt8(ascii: ";") && $0 != UInt8(ascii: ",") && !isBlank($0) }
            rest = rest[token.endIndex...]
            return String(decoding: token, as: UTF8.self)
        }
        rest = rest.dropFirst()
        var bytes: [UInt8] = []
        while let byte = rest.popFirst(), byte != UInt8(ascii: "\"") {
            if byte == UInt8(ascii: "\\"), let next = rest.popFirst() { bytes.append(next) } else { bytes.append(byte) }
        }
        return String(decoding: bytes, as: UTF8.self)
    }

    private static func isBlank(_ byte: UInt8) -> Bool { byte == 0x20 || byte == 0x09 }
}
