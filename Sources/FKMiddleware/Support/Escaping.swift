extension StringProtocol {
    /// The text, safe to show, since names, URLs and error texts come from servers: each character is escaped that could move the cursor,
    /// or hide or reorder text: C0 and C1 controls (with ESC), DEL, line and paragraph separators, bidirectional overrides and isolates,
    /// zero-width and tag characters. `\n`, `\r`, `\t` and `\e` get their short forms, all others `\u{…}`.
    package var visible: String {
        guard unicodeScalars.contains(where: { $0.isHidden }) else { return String(self) }
        var result = String.UnicodeScalarView()
        for scalar in unicodeScalars {
            if scalar.isHidden {
                result.append(contentsOf: scalar.escape.unicodeScalars)
            } else {
                result.append(scalar)
            }
        }
        return String(result)
    }
}

extension Unicode.Scalar {
    /// True for the characters that `visible` escapes.
    package var isHidden: Bool {
        switch value {
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

    fileprivate var escape: String {
        switch self {
        case "\n": "\\n"
        case "\r": "\\r"
        case "\t": "\\t"
        case "\u{1b}": "\\e"
        default: "\\u{\(String(value, radix: 16))}"
        }
    }
}
