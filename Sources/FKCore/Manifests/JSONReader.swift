/// Reads JSON (RFC 8259) from memory, value by value, with the position of each object. Foundation's reader has no
/// positions and builds a tree of the whole document. `JSONList` reads documents that come in portions.
package struct JSONReader: Sendable {
    /// A value with its members in order.
    indirect enum Value: Sendable {
        case null
        case bool(Bool)
        /// The number as written.
        case number(String)
        case string(String)
        case array([Value])
        case object(Object)

        var string: String? { if case .string(let text) = self { text } else { nil } }
        var object: Object? { if case .object(let object) = self { object } else { nil } }
        var array: [Value]? { if case .array(let values) = self { values } else { nil } }
        var isNull: Bool { if case .null = self { true } else { false } }
        /// A text, or a number as written.
        var text: String? { if case .number(let text) = self { text } else { string } }
        /// The value of an integer; nil for any other value.
        var integer: Int64? { if case .number(let text) = self { Int64(text) } else { nil } }
    }

    /// The members of an object. If two have the same name, the last one counts.
    struct Object: Sendable {
        var members: [Member] = []
        /// The offset of its opening brace.
        var start: Int

        /// Returns nil for a missing or null member.
        subscript(name: String) -> Value? {
            guard let value = members.last(where: { $0.name.isExactly(name) })?.value, !value.isNull else { return nil }
            return value
        }
    }

    struct Member: Sendable {
        var name: String
        var value: Value
    }

    /// A fault and its position.
    package struct Fault: Error {
        let reason: String
        let offset: Int
    }

    /// The maximum depth of nesting. No list is deeper, and deeper documents could exhaust the stack.
    static let maxDepth = 32

    /// The maximum number of values in one value. An entry with 100,000 addresses has fewer, and a document of numbers would
    /// take 30 times its size.
    static let maxValues = 500_000

    /// The maximum number of bytes behind `index` that a decision depends on.
    static let lookahead = 16

    private(set) var bytes: [UInt8]
    private(set) var index = 0
    /// The number of values in the present outermost one.
    private var values = 0

    package init(_ bytes: [UInt8]) {
        self.bytes = bytes
        skipByteOrderMark()
    }

    /// Reads a line that is one object.
    static func object(
        _ bytes: ArraySlice<UInt8>, _ form: Manifest.Form, _ line: Int
    ) throws(ManifestError) -> Object {
        var reader = JSONReader(Array(bytes))
        do throws(Fault) {
            let value = try reader.value()
            try reader.expectEnd()
            guard let object = value.object else { throw Fault(reason: "an object is expected here", offset: 0) }
            return object
        } catch {
            throw ManifestError(form: form, line: line, column: error.offset + 1, error.reason)
        }
    }

    var unread: Int { bytes.count - index }

    mutating func skipByteOrderMark() {
        if index == 0, bytes.starts(with: [0xef, 0xbb, 0xbf]) { index = 3 }
    }

    /// Removes the first `count` bytes, which were read, and adds the next ones.
    mutating func slide(by count: Int, adding more: [UInt8]) {
        if count > 0 { bytes.removeFirst(count) }
        index -= count
        if bytes.isEmpty { bytes = more } else { bytes += more }
    }

    mutating func goBack(to offset: Int) { index = offset }

    /// The first byte of the next value; nil at the end.
    package mutating func peek() -> UInt8? {
        while index < bytes.count {
            switch bytes[index] {
            case 0x20, 0x09, 0x0a, 0x0d: index += 1
            default: return bytes[index]
            }
        }
        return nil
    }

    /// Reads `byte`, which must be next.
    package mutating func expect(_ byte: UInt8) throws(Fault) {
        guard peek() == byte else { throw unexpected("'\(Character(Unicode.Scalar(byte)))'") }
        index += 1
    }

    /// Reads `byte` if it is next.
    package mutating func skip(_ byte: UInt8) -> Bool {
        guard peek() == byte else { return false }
        index += 1
        return true
    }

    /// Checks that only white space follows.
    package mutating func expectEnd() throws(Fault) {
        if peek() != nil { throw unexpected("the end") }
    }

    mutating func value(depth: Int = 0) throws(Fault) -> Value {
        guard depth <= Self.maxDepth else { throw fault("more than \(Self.maxDepth) arrays and objects in each other") }
        values = depth == 0 ? 1 : values + 1
        guard values <= Self.maxValues else { throw fault("more than \(Self.maxValues) values in one entry or member") }
        switch peek() {
        case UInt8(ascii: "{"): return .object(try object(depth))
        case UInt8(ascii: "["):
            index += 1
            var values: [Value] = []
            if skip(UInt8(ascii: "]")) { return .array(values) }
            repeat { values.append(try value(depth: depth + 1)) } while skip(UInt8(ascii: ","))
            try expect(UInt8(ascii: "]"))
            return .array(values)
        case UInt8(ascii: "\""): return .string(try string())
        case UInt8(ascii: "t"):
            try word("true")
            return .bool(true)
        case UInt8(ascii: "f"):
            try word("false")
            return .bool(false)
        case UInt8(ascii: "n"):
            try word("null")
            return .null
        case let byte? where byte == UInt8(ascii: "-") || byte.isASCIIDigit: return .number(try number())
        default: throw unexpected("a value")
        }
    }

    /// Reads the next value if it is neither an array nor an object, and skips it otherwise. Returns nil for a skipped value.
    mutating func scalar(depth: Int = 0) throws(Fault) -> Value? {
        guard depth <= Self.maxDepth else { throw fault("more than \(Self.maxDepth) arrays and objects in each other") }
        let isObject = peek() == UInt8(ascii: "{")
        guard isObject || peek() == UInt8(ascii: "[") else { return try value() }
        let end = isObject ? UInt8(ascii: "}") : UInt8(ascii: "]")
        index += 1
        if skip(end) { return nil }
        repeat {
            if isObject { _ = try memberName() }
            _ = try scalar(depth: depth + 1)
        } while skip(UInt8(ascii: ","))
        try expect(end)
        return nil
    }

    private mutating func object(_ depth: Int) throws(Fault) -> Object {
        var object = Object(start: index)
        index += 1
        if skip(UInt8(ascii: "}")) { return object }
        repeat {
            let name = try memberName()
            object.members.append(Member(name: name, value: try value(depth: depth + 1)))
        } while skip(UInt8(ascii: ","))
        try expect(UInt8(ascii: "}"))
        return object
    }

    /// Reads a member's name and its colon.
    package mutating func memberName() throws(Fault) -> String {
        guard peek() == UInt8(ascii: "\"") else { throw unexpected("a member's name in quotes") }
        let name = try string()
        try expect(UInt8(ascii: ":"))
        return name
    }

    /// Reads a word, such as `null`, which must be next.
    package mutating func word(_ text: StaticString) throws(Fault) {
        let isThere = text.withUTF8Buffer { bytes[index...].starts(with: $0) }
        guard isThere else { throw unexpected("a value") }
        index += text.utf8CodeUnitCount
    }

    /// Reads a number, as it is written. Its first byte must be next.
    package mutating func number() throws(Fault) -> String {
        let start = index
        if bytes[index] == UInt8(ascii: "-") { index += 1 }
        let isZero = index < bytes.count && bytes[index] == UInt8(ascii: "0")
        let count = digits()
        var isRight = count > 0 && (!isZero || count == 1)
        if isRight, index < bytes.count, bytes[index] == UInt8(ascii: ".") {
            index += 1
            isRight = digits() > 0
        }
        if isRight, index < bytes.count, bytes[index] | 0x20 == UInt8(ascii: "e") {
            index += 1
            if index < bytes.count, bytes[index] == UInt8(ascii: "+") || bytes[index] == UInt8(ascii: "-") {
                index += 1
            }
            isRight = digits() > 0
        }
        guard isRight else { throw unexpected("a digit of a number") }
        return String(decoding: bytes[start..<index], as: UTF8.self)
    }

    private mutating func digits() -> Int {
        let start = index
        while index < bytes.count, bytes[index].isASCIIDigit { index += 1 }
        return index - start
    }

    /// Reads a text. Its opening quote must be next.
    package mutating func string() throws(Fault) -> String {
        let start = index
        index += 1
        let first = index
        while index < bytes.count, bytes[index] != UInt8(ascii: "\""), bytes[index] != UInt8(ascii: "\\"),
            bytes[index] >= 0x20
        { index += 1 }
        var text = Array(bytes[first..<index])
        while true {
            guard index < bytes.count else { throw fault("the text has no closing quote", at: start) }
            let byte = bytes[index]
            if byte < 0x20 { throw fault("a control character stands in a text as it is") }
            index += 1
            if byte == UInt8(ascii: "\"") { break }
            if byte == UInt8(ascii: "\\") { try escape(into: &text) } else { text.append(byte) }
        }
        guard let result = String(validating: text, as: UTF8.self) else {
            throw fault("the text is not UTF-8", at: start)
        }
        return result
    }

    private mutating func escape(into text: inout [UInt8]) throws(Fault) {
        guard index < bytes.count else { throw unexpected("an escape") }
        let byte = bytes[index]
        index += 1
        switch byte {
        case UInt8(ascii: "\""), UInt8(ascii: "\\"), UInt8(ascii: "/"): text.append(byte)
        case UInt8(ascii: "b"): text.append(0x08)
        case UInt8(ascii: "f"): text.append(0x0c)
        case UInt8(ascii: "n"): text.append(0x0a)
        case UInt8(ascii: "r"): text.append(0x0d)
        case UInt8(ascii: "t"): text.append(0x09)
        case UInt8(ascii: "u"):
            var code = try unit()
            if (0xd800..<0xdc00).contains(code), index + 1 < bytes.count, bytes[index] == UInt8(ascii: "\\"),
                bytes[index + 1] == UInt8(ascii: "u")
            {
                index += 2
                let low = try unit()
                guard (0xdc00..<0xe000).contains(low) else { throw fault("half of a surrogate pair is missing") }
                code = 0x10000 + (code - 0xd800) << 10 + (low - 0xdc00)
            }
            guard let scalar = Unicode.Scalar(code) else { throw fault("half of a surrogate pair is missing") }
            text += Array(String(Character(scalar)).utf8)
        default: throw fault("an escape that JSON does not have", at: index - 1)
        }
    }

    private mutating func unit() throws(Fault) -> UInt32 {
        var code: UInt32 = 0
        for _ in 0..<4 {
            guard index < bytes.count, let digit = bytes[index].hexValue else {
                throw unexpected("four hexadecimal digits")
            }
            code = code << 4 | UInt32(digit)
            index += 1
        }
        return code
    }

    private func fault(_ reason: String, at offset: Int? = nil) -> Fault {
        Fault(reason: reason, offset: offset ?? index)
    }

    /// The fault of another byte, or of the end, where `wanted` should be.
    package func unexpected(_ wanted: String) -> Fault {
        guard index < bytes.count else { return fault("the document ends where \(wanted) should be: it is not whole") }
        return fault("\(wanted) is expected here")
    }
}
