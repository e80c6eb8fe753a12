import Foundation

/// Extracts one readable line from a server's error page.
package enum ErrorPage {
    /// The text of a page; nil if there is none, or if the bytes are no text, such as those of an image. Bytes that are not UTF-8 are
    /// replaced.
    package static func text(_ bytes: [UInt8]) -> String? {
        let page = String(decoding: bytes, as: UTF8.self)
        let strange = page.unicodeScalars.count {
            $0 == "\u{fffd}" || $0.properties.generalCategory == .control && !$0.properties.isWhitespace
        }
        // A page in another encoding than UTF-8 has some strange characters.
        guard !bytes.contains(0), strange * 5 <= page.unicodeScalars.count else { return nil }
        return page.pageLine
    }

    fileprivate static func line(_ text: String) -> String? {
        let scalars = text.unicodeScalars.map { scalar in
            switch scalar.properties.generalCategory {
            case .control, .format, .lineSeparator, .paragraphSeparator: Unicode.Scalar(" ")
            default: scalar
            }
        }
        let words = String(String.UnicodeScalarView(scalars)).split(whereSeparator: \.isWhitespace)
        return words.isEmpty ? nil : words.joined(separator: " ")
    }

    /// Splits a page into tags and text. It is not an HTML parser.
    fileprivate struct Parts {
        private var rest: Substring
        private(set) var text = ""
        private(set) var title = ""

        init(_ page: String) { rest = page[...] }

        mutating func read() {
            while let open = rest.firstIndex(where: { $0 == "<" || $0 == "&" }) {
                text += rest[..<open]
                rest = rest[open...]
                if rest.first == "&" { parseEntity() } else { parseTag() }
            }
            text += rest
        }

        private mutating func parseTag() {
            let inner = rest.dropFirst()
            guard let first = inner.first, first.isLetter || "/!?".contains(first) else {
                text.append(rest.removeFirst())
                return
            }
            text += " "
            if inner.hasPrefix("!--") { return skip(behind: "-->") }
            let name = inner.prefix { $0.isLetter }.lowercased()
            skip(behind: ">")
            // The content of these elements is not text of the page.
            guard ["style", "script", "title"].contains(name) else { return }
            let end = rest.range(of: "</\(name)", options: .caseInsensitive)
            if name == "title" { title += rest[..<(end?.lowerBound ?? rest.endIndex)] + " " }
            rest = end.map { rest[$0.lowerBound...] } ?? ""
        }

        private mutating func skip(behind mark: String) {
            rest = rest.range(of: mark).map { rest[$0.upperBound...] } ?? ""
        }

        private mutating func parseEntity() {
            let name = rest.dropFirst().prefix(10).prefix { $0 != ";" && !$0.isWhitespace }
            let end = rest.index(rest.startIndex, offsetBy: name.count + 1)
            guard end < rest.endIndex, rest[end] == ";", let character = Self.character(name) else {
                text.append(rest.removeFirst())
                return
            }
            text.append(character)
            rest = rest[rest.index(after: end)...]
        }

        private static func character(_ name: Substring) -> Character? {
            if let known = names[String(name)] { return known }
            guard name.first == "#" else { return nil }
            let digits = name.dropFirst()
            let isHexadecimal = digits.first == "x" || digits.first == "X"
            let code = isHexadecimal ? UInt32(digits.dropFirst(), radix: 16) : UInt32(digits)
            return code.flatMap(Unicode.Scalar.init).map(Character.init)
        }

        private static let names: [String: Character] = [
            "amp": "&", "lt": "<", "gt": ">", "quot": "\"", "apos": "'", "nbsp": " ", "copy": "©", "middot": "·",
            "ndash": "–", "mdash": "—", "hellip": "…",
        ]
    }
}

extension String {
    /// The text of an error page without markup, entities, control and invisible characters; nil if there is none. The title is used
    /// only if there is no other text, because it repeats the heading.
    /// Only the beginning of a page is stored, so it may be cut anywhere.
    package var pageLine: String? {
        var parts = ErrorPage.Parts(self)
        parts.read()
        return ErrorPage.line(parts.text) ?? ErrorPage.line(parts.title)
    }
}
