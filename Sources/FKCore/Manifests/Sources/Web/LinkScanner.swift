import FKMiddleware

/// Finds the links of a web page, in one pass and without a tree of its elements. It reads any bytes: what is no markup is text.
///
/// The text of the row comes with each link: in a listing, the time and the size in words.
struct LinkScanner {
    struct Link {
        /// The value of `href`, with its character references decoded and without line ends.
        var target: [UInt8]
        /// The text of the link, at most 400 bytes.
        var text: [UInt8]
        /// The other text of its row, with single blanks, at most 200 bytes.
        var row: [UInt8]
    }

    /// The links in order. At most `maxLinks`.
    private(set) var links: [Link] = []
    /// The text of the title, at most 400 bytes.
    private(set) var title: [UInt8] = []
    /// The value of the first `<base href>`; nil without one.
    private(set) var base: [UInt8]?
    /// True if the page has a preformatted block.
    private(set) var hasBlock = false
    /// True if a page has more links than are read.
    private(set) var isTooLong = false

    /// The most links of a page.
    static let maxLinks = 2_000_000
    private static let maxText = 400
    private static let maxRow = 200

    private let bytes: [UInt8]
    private var index = 0
    private var row: [UInt8] = []
    /// The first link of the present row.
    private var rowStart = 0
    private var isInLink = false
    private var isInTitle = false
    private var blocks = 0
    private var opened: Set<Frame> = []
    private var closed: Set<Frame> = []
    /// True if the page ends inside a tag, a comment or a script.
    private var isCut = false

    /// Elements whose end shows that a page is whole.
    private enum Frame { case html, body, table, list }

    init(_ bytes: [UInt8]) {
        self.bytes = bytes
        scan()
        endRow()
    }

    /// True unless the page ends before what it has opened. A page that is cut off at the end of an element without such a frame
    /// looks whole; its length or its framing shows it.
    var isWhole: Bool {
        guard !isCut, blocks <= 0 else { return false }
        if opened.contains(.html) || opened.contains(.body) { return closed.contains(.html) || closed.contains(.body) }
        return opened.isSubset(of: closed)
    }

    /// True if there is no text outside of links and markup.
    private(set) var isBlank = true

    private mutating func scan() {
        while index < bytes.count {
            let byte = bytes[index]
            if byte == UInt8(ascii: "<"), let next = byteAt(index + 1) {
                if next == UInt8(ascii: "!") {
                    skipDeclaration()
                } else if next == UInt8(ascii: "?") {
                    skip(to: UInt8(ascii: ">"))
                } else if next.isASCIILetter || next == UInt8(ascii: "/") {
                    readTag()
                } else {
                    consumeRun()
                }
            } else if byte == UInt8(ascii: "&") {
                consume(Self.reference(bytes, &index)[...])
            } else {
                consumeRun()
            }
        }
    }

    /// Reads the text up to the next markup or character reference.
    private mutating func consumeRun() {
        let start = index
        // The first byte is text, whatever it is: a page may end with `<`.
        index += 1
        while index < bytes.count, bytes[index] != UInt8(ascii: "<"), bytes[index] != UInt8(ascii: "&") { index += 1 }
        consume(bytes[start..<index])
    }

    private func byteAt(_ index: Int) -> UInt8? { index < bytes.count ? bytes[index] : nil }

    // MARK: Text

    private mutating func consume(_ text: ArraySlice<UInt8>) {
        if isInTitle {
            title += text.prefix(Self.maxText - title.count)
        } else if isInLink {
            let last = links.count - 1
            links[last].text += text.prefix(Self.maxText - links[last].text.count)
        } else {
            var text = text
            while blocks > 0, let end = text.firstIndex(of: 0x0a) {
                addToRow(text[..<end])
                endRow()
                text = text[(end + 1)...]
            }
            addToRow(text)
        }
    }

    private mutating func addToRow(_ text: ArraySlice<UInt8>) {
        for byte in text {
            let isText = byte > 0x20
            if isText { isBlank = false }
            guard row.count < Self.maxRow, isText || !row.isEmpty && row.last != 0x20 else { continue }
            row.append(isText ? byte : 0x20)
        }
    }

    private mutating func endRow() {
        isInLink = false
        if rowStart < links.count {
            if row.last == 0x20 { row.removeLast() }
            for index in rowStart..<links.count { links[index].row = row }
        }
        rowStart = links.count
        row.removeAll(keepingCapacity: true)
    }

    // MARK: Markup

    private mutating func skip(to byte: UInt8) {
        guard let end = bytes[index...].firstIndex(of: byte) else {
            isCut = true
            return index = bytes.count
        }
        index = end + 1
    }

    private mutating func skipDeclaration() {
        guard bytes[index...].starts(with: "<!--".utf8) else { return skip(to: UInt8(ascii: ">")) }
        index += 4
        while index < bytes.count, !bytes[index...].starts(with: "-->".utf8) { index += 1 }
        if index >= bytes.count { isCut = true }
        index = min(index + 3, bytes.count)
    }

    private mutating func readTag() {
        index += 1
        let isEnd = byteAt(index) == UInt8(ascii: "/")
        if isEnd { index += 1 }
        let start = index
        while let byte = byteAt(index), byte > 0x20, byte != UInt8(ascii: ">"), byte != UInt8(ascii: "/") { index += 1 }
        let name = String(decoding: bytes[start..<min(index, start + 16)], as: UTF8.self).lowercased()
        var target: [UInt8]?
        let wantsTarget = !isEnd && (name == "a" || name == "base")
        while true {
            while let byte = byteAt(index), byte <= 0x20 || byte == UInt8(ascii: "/") { index += 1 }
            guard let byte = byteAt(index) else {
                isCut = true
                return
            }
            if byte == UInt8(ascii: ">") {
                index += 1
                break
            }
            let isTarget = readAttributeName()
            let value = readValue(keeps: wantsTarget && isTarget && target == nil)
            if let value { target = value }
        }
        act(on: name, isEnd: isEnd, target)
    }

    /// - Returns: true if the name is `href`.
    private mutating func readAttributeName() -> Bool {
        let start = index
        index += 1
        while let byte = byteAt(index), byte > 0x20, byte != UInt8(ascii: "="), byte != UInt8(ascii: ">"),
            byte != UInt8(ascii: "/")
        { index += 1 }
        return index - start == 4 && zip(bytes[start..<index], "href".utf8).allSatisfy { $0 | 0x20 == $1 }
    }

    private mutating func readValue(keeps: Bool) -> [UInt8]? {
        while let byte = byteAt(index), byte <= 0x20 { index += 1 }
        guard byteAt(index) == UInt8(ascii: "=") else { return nil }
        index += 1
        while let byte = byteAt(index), byte <= 0x20 { index += 1 }
        guard let quote = byteAt(index) else { return nil }
        let start: Int
        if quote == UInt8(ascii: "\"") || quote == UInt8(ascii: "'") {
            start = index + 1
            guard let end = bytes[start...].firstIndex(of: quote) else {
                isCut = true
                index = bytes.count
                return nil
            }
            index = end + 1
            return keeps ? Self.target(bytes[start..<end]) : nil
        }
        start = index
        while let byte = byteAt(index), byte > 0x20, byte != UInt8(ascii: ">") { index += 1 }
        return keeps ? Self.target(bytes[start..<index]) : nil
    }

    private mutating func act(on name: String, isEnd: Bool, _ target: [UInt8]?) {
        switch name {
        case "a":
            isInLink = false
            guard !isEnd, let target else { return }
            guard links.count < Self.maxLinks else { return isTooLong = true }
            links.append(Link(target: target, text: [], row: []))
            isInLink = true
        case "base": if base == nil { base = target }
        case "title": isInTitle = !isEnd && title.isEmpty
        case "script", "style", "textarea", "template": if !isEnd { skipContent(of: name) }
        case "pre":
            blocks += isEnd ? -1 : 1
            hasBlock = true
            endRow()
        case "tr", "br", "li", "p", "hr", "h1", "tbody", "thead": endRow()
        case "td", "th": if !row.isEmpty, row.last != 0x20 { row.append(0x20) }
        case "table": frame(.table, isEnd)
        case "ul", "ol": frame(.list, isEnd)
        case "html": frame(.html, isEnd)
        case "body": frame(.body, isEnd)
        default: break
        }
    }

    private mutating func frame(_ frame: Frame, _ isEnd: Bool) {
        if isEnd { closed.insert(frame) } else { opened.insert(frame) }
        endRow()
    }

    /// Skips the text of an element that has no markup.
    private mutating func skipContent(of name: String) {
        let end = Array("</\(name)".utf8)
        while let next = bytes[index...].firstIndex(of: UInt8(ascii: "<")) {
            index = next
            if bytes.count - index >= end.count,
                zip(bytes[index...], end).allSatisfy({ $0 | ($0.isASCIILetter ? 0x20 : 0) == $1 })
            {
                return
            }
            index += 1
        }
        isCut = true
        index = bytes.count
    }

    // MARK: Character references

    /// A link's target without surrounding blanks and line ends (HTML, section 4.2.4 of its URL standard).
    private static func target(_ bytes: ArraySlice<UInt8>) -> [UInt8] {
        let text = Array(bytes)
        guard text.contains(where: { $0 <= 0x20 || $0 == UInt8(ascii: "&") }) else { return text }
        var result: [UInt8] = []
        var index = 0
        while index < text.count {
            if text[index] == UInt8(ascii: "&") {
                result += reference(text, &index)
            } else {
                result.append(text[index])
                index += 1
            }
        }
        result.removeAll { $0 == 0x09 || $0 == 0x0a || $0 == 0x0d }
        while let last = result.last, last <= 0x20 { result.removeLast() }
        return Array(result.drop { $0 <= 0x20 })
    }

    private static let names: [String: String] = [
        "amp": "&", "lt": "<", "gt": ">", "quot": "\"", "apos": "'", "nbsp": " ", "sol": "/", "colon": ":",
        "period": ".", "num": "#", "quest": "?", "percnt": "%", "plus": "+", "semi": ";", "lpar": "(", "rpar": ")",
        "lsqb": "[", "rsqb": "]",
    ]

    /// The bytes of the reference at `index`, which moves behind it. What is none stays as it is. A reference ends with a semicolon:
    /// a query such as `?C=N&O=D` has none.
    private static func reference(_ bytes: [UInt8], _ index: inout Int) -> [UInt8] {
        let limit = min(bytes.count, index + 12)
        guard let end = bytes[index..<limit].firstIndex(of: UInt8(ascii: ";")), end > index + 1 else {
            index += 1
            return [UInt8(ascii: "&")]
        }
        let name = String(decoding: bytes[(index + 1)..<end], as: UTF8.self)
        var text: String?
        if name.hasPrefix("#") {
            let digits = name.dropFirst()
            let isHex = digits.first == "x" || digits.first == "X"
            let code = isHex ? UInt32(digits.dropFirst(), radix: 16) : UInt32(digits)
            text = code.flatMap(Unicode.Scalar.init).map { String(Character($0)) }
        } else {
            text = names[name]
        }
        guard let text else {
            index += 1
            return [UInt8(ascii: "&")]
        }
        index = end + 1
        return Array(text.utf8)
    }
}
