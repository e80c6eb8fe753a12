/// Makes untrusted text safe to show. Names, URLs and error texts come from servers.
package enum Escaping {
    /// The text with every character escaped that could move the cursor, or hide or reorder text: C0 and C1 controls
    /// (with ESC), DEL, line and paragraph separators, bidirectional overrides and isolates, zero-width and tag
    /// characters. `\n`, `\r`, `\t` and `\e` get their short forms, all others `\u{…}`.
    package static func visible(_ text: some StringProtocol) -> String {
        guard text.unicodeScalars.contains(where: isHidden) else { return String(text) }
        var result = String.UnicodeScalarView()
        for scalar in text.unicodeScalars {
            if isHidden(scalar) {
                result.append(contentsOf: escape(scalar).unicodeScalars)
            } else {
                result.append(scalar)
            }
        }
        return String(result)
    }

    /// True for the characters that `visible(_:)` escapes.
    package static func isHidden(_ scalar: Unicode.Scalar) -> Bool {
        switch scalar.value {
        case 0x00..<0x20, 0x7f..<0xa0: true
        case 0x061c, 0x200e, 0x200f: true  // direction marks
        case 0x200b, 0x2060...0x2064, 0xfeff: true  // zero width
        case 0x2028, 0x2029: true  // separators
        case 0x202a...0x202e, 0x2066...0x206f: true  // embeddings, overrides, isolates, deprecated format characters
        case 0xfff9...0xfffb: true  // interlinear annotation
        case 0xe0000...0xe007f: true  // tags
        default: false
        }
    }

    private static func escape(_ scalar: Unicode.Scalar) -> String {
        switch scalar {
        case "\n": "\\n"
        case "\r": "\\r"
        case "\t": "\\t"
        case "\u{1b}": "\\e"
        default: "\\u{\(String(scalar.value, radix: 16))}"
        }
    }
}
