import FKMiddleware

/// Formats JSON from any writer for display: indented or on one line, and safe for a terminal.
enum JSONLayout {
    /// - Parameters:
    ///   - json: a JSON text. White space between its values is dropped.
    ///   - indent: the number of spaces before each line after the first, with two more for each level; nil puts
    ///     everything on one line.
    static func text(_ json: [UInt8], indent: Int?) -> [UInt8] {
        var text: [UInt8] = []
        text.reserveCapacity(indent == nil ? json.count : json.count + json.count / 2)
        var writer = Writer(column: indent)
        json.withUnsafeBufferPointer { writer.write($0, to: &text) }
        return hasHidden(text) ? escapingHidden(text) : text
    }

    /// The formatted text with a line end.
    static func line(_ json: [UInt8], indent: Int?) -> String {
        String(decoding: text(json, indent: indent) + [0x0a], as: UTF8.self)
    }

    private struct Writer {
        /// The start of a line at the current level; nil for a single line.
        var column: Int?

        mutating func write(_ json: UnsafeBufferPointer<UInt8>, to text: inout [UInt8]) {
            var index = 0
            while index < json.count {
                let byte = json[index]
                switch byte {
                case UInt8(ascii: "\""):
                    let end = Self.endOfString(json, from: index)
                    text.append(contentsOf: json[index..<end])
                    index = end
                    continue
                case UInt8(ascii: "{"), UInt8(ascii: "["):
                    text.append(byte)
                    var next = index + 1
                    while next < json.count, isBlank(json[next]) { next += 1 }
                    if next < json.count, json[next] == byte + 2 {
                        text.append(json[next])
                        index = next
                    } else {
                        breakLine(2, &text)
                    }
                case UInt8(ascii: "}"), UInt8(ascii: "]"):
                    breakLine(-2, &text)
                    text.append(byte)
                case UInt8(ascii: ","):
                    text.append(byte)
                    breakLine(0, &text)
                case UInt8(ascii: ":"):
                    text.append(byte)
                    if column != nil { text.append(0x20) }
                default:
                    if !isBlank(byte) { text.append(byte) }
                }
                index += 1
            }
        }

        private mutating func breakLine(_ change: Int, _ text: inout [UInt8]) {
            guard let old = column else { return }
            column = old + change
            text.append(0x0a)
            text.append(contentsOf: repeatElement(0x20, count: old + change))
        }

        private func isBlank(_ byte: UInt8) -> Bool { byte == 0x20 || byte == 0x09 || byte == 0x0a || byte == 0x0d }

        private static func endOfString(_ json: UnsafeBufferPointer<UInt8>, from start: Int) -> Int {
            var index = start + 1
            while index < json.count, json[index] != UInt8(ascii: "\"") {
                index += json[index] == UInt8(ascii: "\\") ? 2 : 1
            }
            return min(index + 1, json.count)
        }
    }

    // MARK: Characters that a terminal could interpret

    private static func hasHidden(_ text: [UInt8]) -> Bool {
        !text.allSatisfy { $0 < 0x7f && ($0 >= 0x20 || $0 == 0x0a) }
    }

    /// They occur only in strings, so each of them may be written as an escape. Line ends come from the layout.
    private static func escapingHidden(_ text: [UInt8]) -> [UInt8] {
        var result: [UInt8] = []
        for scalar in String(decoding: text, as: UTF8.self).unicodeScalars {
            if scalar == "\n" || !scalar.isHidden {
                result.append(contentsOf: String(scalar).utf8)
                continue
            }
            for unit in String(scalar).utf16 {
                let digits = String(unit, radix: 16)
                result += "\\u\(String(repeating: "0", count: 4 - digits.count))\(digits)".utf8
            }
        }
        return result
    }
}
