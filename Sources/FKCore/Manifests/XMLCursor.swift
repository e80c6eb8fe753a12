/// Reads the parts of XML below elements: names, attributes, text, references, comments. `XMLReader` combines them.
struct XMLCursor {
    struct Fault: Error {
        let reason: String
        let offset: Int
    }

    /// The maximum number of bytes behind `index` that a decision depends on. A fault with that many bytes behind it is final.
    static let lookahead = 128

    private(set) var bytes: [UInt8]
    var index = 0
    /// The number of bytes that have left the memory.
    private(set) var dropped = 0

    init(_ bytes: [UInt8]) { self.bytes = bytes }

    /// Removes the first `count` bytes, which were read, and adds the next ones.
    mutating func slide(by count: Int, adding more: [UInt8]) {
        if count > 0 { bytes.removeFirst(count) }
        index -= count
        dropped += count
        if bytes.isEmpty { bytes = more } else { bytes += more }
    }

    var isAtEnd: Bool { index >= bytes.count }
    var unread: Int { bytes.count - index }
    /// The byte at a distance from the current one; 0 after the end.
    func byte(_ distance: Int = 0) -> UInt8 { index + distance < bytes.count ? bytes[index + distance] : 0 }

    mutating func readAttribute() throws(Fault) -> (name: ArraySlice<UInt8>, value: String, start: Int) {
        let start = index
        let name = try readName()
        skipBlanks()
        try expect("=")
        skipBlanks()
        guard index < bytes.count else { throw ended("an attribute") }
        let quote = bytes[index]
        guard quote == UInt8(ascii: "\"") || quote == UInt8(ascii: "'") else {
            throw fault("the value of an attribute stands in quotes")
        }
        index += 1
        var value: [UInt8] = []
        while true {
            guard index < bytes.count else { throw ended("an attribute") }
            let byte = bytes[index]
            if byte == quote { break }
            switch byte {
            case UInt8(ascii: "<"): throw fault("'<' stands in the value of an attribute; write &lt;")
            case UInt8(ascii: "&"): try readReference(into: &value)
            // Section 3.3.3: white space not written as a reference becomes spaces; a CRLF becomes one.
            case 0x0d where index + 1 < bytes.count && bytes[index + 1] == 0x0a: index += 1
            case 0x09, 0x0a, 0x0d:
                value.append(0x20)
                index += 1
            default:
                try checkByte(byte)
                value.append(byte)
                index += 1
            }
        }
        index += 1
        return (name, try text(value[...], at: start), start)
    }

    // MARK: Text

    /// Reads the text up to the next tag; nil for white space outside of the root element.
    mutating func readText(isInside: Bool) throws(Fault) -> String? {
        let start = index
        var text: [UInt8] = []
        while index < bytes.count, bytes[index] != UInt8(ascii: "<") {
            let byte = bytes[index]
            if byte == UInt8(ascii: "&") {
                guard isInside else { throw fault("text stands outside of the root element") }
                try readReference(into: &text)
                continue
            }
            if byte == 0x0d {
                // Section 2.11: every line ends with LF.
                text.append(0x0a)
                index += index + 1 < bytes.count && bytes[index + 1] == 0x0a ? 2 : 1
                continue
            }
            if byte == UInt8(ascii: "]"), bytes[index...].starts(with: "]]>".utf8) {
                throw fault("']]>' stands in text")
            }
            try checkByte(byte)
            guard isInside || byte == 0x20 || byte == 0x09 || byte == 0x0a else {
                throw fault("text stands outside of the root element")
            }
            text.append(byte)
            index += 1
        }
        let result = try self.text(text[...], at: start)
        return !isInside ? nil : result
    }

    /// Reads a comment, or CDATA with its text.
    mutating func readSpecial(isInside: Bool) throws(Fault) -> String? {
        let start = index
        let rest = bytes[index...]
        if rest.starts(with: "<!--".utf8) {
            index += 4
            while index + 2 < bytes.count {
                if bytes[index] == UInt8(ascii: "-"), bytes[index + 1] == UInt8(ascii: "-") {
                    guard bytes[index + 2] == UInt8(ascii: ">") else { throw fault("'--' stands in a comment") }
                    _ = try text(bytes[start + 4..<index], at: start)
                    index += 3
                    return nil
                }
                try checkByte(bytes[index])
                index += 1
            }
            index = bytes.count
            throw ended("a comment")
        }
        if rest.starts(with: "<![CDATA[".utf8) {
            guard isInside else { throw fault("text stands outside of the root element") }
            index += 9
            var text: [UInt8] = []
            while index + 2 < bytes.count {
                let byte = bytes[index]
                if byte == UInt8(ascii: "]"), bytes[index + 1] == UInt8(ascii: "]"),
                    bytes[index + 2] == UInt8(ascii: ">")
                {
                    index += 3
                    return try self.text(text[...], at: start)
                }
                try checkByte(byte)
                if byte != 0x0d { text.append(byte) } else if bytes[index + 1] != 0x0a { text.append(0x0a) }
                index += 1
            }
            index = bytes.count
            throw ended("a CDATA section")
        }
        if rest.starts(with: "<!DOCTYPE".utf8) {
            throw fault("the document has a document type (<!DOCTYPE), which is not read for safety: remove it")
        }
        throw fault("'<!' begins neither a comment nor CDATA")
    }

    /// Reads a reference such as `&amp;` or `&#10;`.
    mutating func readReference(into result: inout [UInt8]) throws(Fault) {
        let start = index
        guard let end = bytes[index..<min(bytes.count, index + 64)].firstIndex(of: UInt8(ascii: ";")) else {
            throw fault("'&' begins no reference; write &amp;")
        }
        let name = bytes[(start + 1)..<end]
        index = end + 1
        switch String(decoding: name, as: UTF8.self) {
        case "amp": result.append(UInt8(ascii: "&"))
        case "lt": result.append(UInt8(ascii: "<"))
        case "gt": result.append(UInt8(ascii: ">"))
        case "quot": result.append(UInt8(ascii: "\""))
        case "apos": result.append(UInt8(ascii: "'"))
        case let text where name.first == UInt8(ascii: "#"):
            let digits = text.dropFirst().first == "x" ? text.dropFirst(2) : text.dropFirst()
            let isHex = digits.startIndex != text.index(after: text.startIndex)
            let isRight = !digits.isEmpty && digits.utf8.allSatisfy { isHex ? $0.hexValue != nil : $0.isASCIIDigit }
            guard isRight, let code = UInt32(digits, radix: isHex ? 16 : 10), let scalar = Unicode.Scalar(code),
                Self.isAllowed(scalar)
            else { throw fault("&\(text); is no character that XML allows", at: start) }
            result += Array(String(Character(scalar)).utf8)
        case let text: throw fault("the entity &\(text); is not one of XML's own five; others are not read", at: start)
        }
    }

    // MARK: Bytes

    /// Reads the beginning: a byte order mark, and the declaration `<?xml version="1.0" encoding="UTF-8"?>`.
    mutating func readDeclaration() throws(Fault) {
        if bytes.starts(with: [0xef, 0xbb, 0xbf]) { index = 3 }
        if bytes.starts(with: [0xff, 0xfe]) || bytes.starts(with: [0xfe, 0xff]) || bytes.starts(with: [0x3c, 0]) {
            throw fault("the document is in UTF-16: save it as UTF-8")
        }
        let rest = bytes[index...]
        guard rest.starts(with: "<?xml".utf8), rest.count > 5, Self.isBlank(rest[rest.startIndex + 5]) else { return }
        let start = index
        index += 5
        var values: [(name: String, value: String)] = []
        while true {
            let hasBlank = skipBlanks()
            guard index < bytes.count else { throw ended("the XML declaration") }
            if bytes[index] == UInt8(ascii: "?") { break }
            guard hasBlank else { throw fault("a blank is missing in the XML declaration") }
            let attribute = try readAttribute()
            values.append((String(decoding: attribute.name, as: UTF8.self), attribute.value))
        }
        index += 1
        try expect(">")
        let names = values.map(\.name)
        guard names.first == "version", ["version", "encoding", "standalone"].filter(names.contains) == names,
            values[0].value.hasPrefix("1."), values[0].value.utf8.dropFirst(2).allSatisfy(\.isASCIIDigit),
            names.last != "standalone" || ["yes", "no"].contains(values.last?.value)
        else {
            throw fault("the XML declaration is not one of version 1.0", at: start)
        }
        let encoding = values.first { $0.name == "encoding" }?.value.lowercased() ?? "utf-8"
        guard encoding == "utf-8" || encoding == "us-ascii" else {
            throw fault("the document is in \(encoding), and only UTF-8 is read: convert it", at: start)
        }
    }

    mutating func skipInstruction() throws(Fault) {
        let start = index
        index += 2
        let name = try readName()
        guard !String(decoding: name, as: UTF8.self).lowercased().elementsEqual("xml") else {
            throw fault("an XML declaration stands behind the beginning", at: start)
        }
        guard index < bytes.count, Self.isBlank(bytes[index]) || bytes[index] == UInt8(ascii: "?") else {
            throw fault("a blank is missing in an instruction")
        }
        while index + 1 < bytes.count {
            if bytes[index] == UInt8(ascii: "?"), bytes[index + 1] == UInt8(ascii: ">") {
                _ = try text(bytes[start..<index], at: start)
                index += 2
                return
            }
            try checkByte(bytes[index])
            index += 1
        }
        index = bytes.count
        throw ended("an instruction")
    }

    mutating func readName() throws(Fault) -> ArraySlice<UInt8> {
        let start = index
        guard index < bytes.count else { throw ended("a tag") }
        let first = bytes[index]
        guard first.isASCIILetter || first >= 0x80 || first == UInt8(ascii: "_") || first == UInt8(ascii: ":") else {
            throw fault("a name is expected here; for the character itself write &lt;")
        }
        while index < bytes.count, Self.isNameByte(bytes[index]) { index += 1 }
        let name = bytes[start..<index]
        if name.contains(where: { $0 >= 0x80 }) {
            let scalars = try text(name, at: start).unicodeScalars
            guard Self.isNameStart(scalars.first!), scalars.allSatisfy(Self.isNameScalar) else {
                throw fault("a name holds a character that XML does not allow in it", at: start)
            }
        }
        return name
    }

    @discardableResult
    mutating func skipBlanks() -> Bool {
        let start = index
        while index < bytes.count, Self.isBlank(bytes[index]) { index += 1 }
        return index > start
    }

    mutating func expect(_ byte: Unicode.Scalar) throws(Fault) {
        guard index < bytes.count else { throw ended("a tag") }
        guard bytes[index] == UInt8(ascii: byte) else { throw fault("'\(byte)' is expected here") }
        index += 1
    }

    func text(_ bytes: ArraySlice<UInt8>, at offset: Int) throws(Fault) -> String {
        guard let text = String(validating: bytes, as: UTF8.self) else {
            throw fault("the text is not UTF-8", at: offset)
        }
        // XML does not allow the characters U+FFFE and U+FFFF.
        if bytes.contains(0xef), text.unicodeScalars.contains(where: { !Self.isAllowed($0) }) {
            throw fault("the text holds a character that XML does not allow", at: offset)
        }
        return text
    }

    func checkByte(_ byte: UInt8) throws(Fault) {
        if byte < 0x20, byte != 0x09, byte != 0x0a, byte != 0x0d {
            throw fault("the document holds a control character that XML does not allow")
        }
    }

    /// True for a character that XML allows (section 2.2).
    static func isAllowed(_ scalar: Unicode.Scalar) -> Bool {
        switch scalar.value {
        case 0x09, 0x0a, 0x0d, 0x20...0xd7ff, 0xe000...0xfffd, 0x10000...0x10ffff: true
        default: false
        }
    }

    static func isBlank(_ byte: UInt8) -> Bool { byte == 0x20 || byte == 0x09 || byte == 0x0a || byte == 0x0d }

    /// True for the first character of a name (section 2.3), outside of ASCII. ASCII is checked byte by byte.
    static func isNameStart(_ scalar: Unicode.Scalar) -> Bool {
        switch scalar.value {
        case 0..<0x80: true
        case 0xc0...0xd6, 0xd8...0xf6, 0xf8...0x2ff, 0x370...0x37d, 0x37f...0x1fff, 0x200c...0x200d, 0x2070...0x218f,
            0x2c00...0x2fef, 0x3001...0xd7ff, 0xf900...0xfdcf, 0xfdf0...0xfffd, 0x10000...0xeffff:
            true
        default: false
        }
    }

    static func isNameScalar(_ scalar: Unicode.Scalar) -> Bool {
        switch scalar.value {
        case 0xb7, 0x300...0x36f, 0x203f...0x2040: true
        default: isNameStart(scalar)
        }
    }

    static func isNameByte(_ byte: UInt8) -> Bool {
        byte.isASCIILetter || byte.isASCIIDigit || byte >= 0x80 || "_:-.".utf8.contains(byte)
    }

    func fault(_ reason: String, at offset: Int? = nil) -> Fault { Fault(reason: reason, offset: offset ?? index) }
    func ended(_ place: String) -> Fault {
        Fault(reason: "the document ends in the middle of \(place): it is not whole", offset: bytes.count)
    }
}
