import FKMiddleware

/// JSON with its fields in the order they were given, so that output reads as the documentation shows it.
enum JSONValue: Sendable, Hashable, ExpressibleByStringLiteral, ExpressibleByIntegerLiteral, ExpressibleByBooleanLiteral
{
    case null
    case bool(Bool)
    case integer(Int64)
    /// Written with at most three decimals; not-a-number and infinity become null (RFC 8259 has neither).
    case number(Double)
    case string(String)
    case array([JSONValue])
    case object([(String, JSONValue)])

    init(stringLiteral value: String) { self = .string(value) }
    init(integerLiteral value: Int64) { self = .integer(value) }
    init(booleanLiteral value: Bool) { self = .bool(value) }

    static func optional(_ value: Int64?) -> JSONValue { value.map { .integer($0) } ?? .null }
    static func optional(_ value: String?) -> JSONValue { value.map { .string($0) } ?? .null }

    /// On one line, without blanks.
    var compact: String { text(indent: nil) }

    /// Over several lines, indented by two blanks, for documents that people read too.
    var pretty: String { text(indent: 0) }

    /// As `pretty` has it inside of an array or object that is itself not indented.
    var prettyElement: String { text(indent: 2) }

    private func text(indent: Int?) -> String {
        var text: [UInt8] = []
        write(to: &text, indent: indent)
        return String(decoding: text, as: UTF8.self)
    }

    private func write(to text: inout [UInt8], indent: Int?) {
        switch self {
        case .null: text += "null".utf8
        case .bool(let value): text += (value ? "true" : "false").utf8
        case .integer(let value): text += String(value).utf8
        case .number(let value): text += Self.decimal(value).utf8
        case .string(let value): Self.quote(value, to: &text)
        case .array(let values):
            Self.list("[", "]", values, to: &text, indent: indent) { value, text, indent in
                value.write(to: &text, indent: indent)
            }
        case .object(let fields):
            Self.list("{", "}", fields, to: &text, indent: indent) { field, text, indent in
                Self.quote(field.0, to: &text)
                text.append(UInt8(ascii: ":"))
                if indent != nil { text.append(UInt8(ascii: " ")) }
                field.1.write(to: &text, indent: indent)
            }
        }
    }

    private static func list<Element>(
        _ open: Unicode.Scalar, _ close: Unicode.Scalar, _ elements: [Element], to text: inout [UInt8], indent: Int?,
        _ body: (Element, inout [UInt8], Int?) -> Void
    ) {
        func breakLine(_ columns: Int) {
            text.append(0x0a)
            text.append(contentsOf: repeatElement(0x20, count: columns))
        }
        text.append(UInt8(ascii: open))
        let inner = indent.map { $0 + 2 }
        for (index, element) in elements.enumerated() {
            if index > 0 { text.append(UInt8(ascii: ",")) }
            if let inner { breakLine(inner) }
            body(element, &text, inner)
        }
        if let indent, !elements.isEmpty { breakLine(indent) }
        text.append(UInt8(ascii: close))
    }

    private static func decimal(_ value: Double) -> String {
        guard value.isFinite, abs(value) < 1e15 else { return "null" }
        let thousandths = Int64((abs(value) * 1000).rounded())
        var digits = String(thousandths % 1000)
        digits = String(repeating: "0", count: 3 - digits.count) + digits
        while digits.last == "0" { digits.removeLast() }
        let sign = value < 0 && thousandths > 0 ? "-" : ""
        return sign + String(thousandths / 1000) + (digits.isEmpty ? "" : ".\(digits)")
    }

    /// Escapes what RFC 8259 section 7 demands, and every other character that a terminal could act upon.
    private static func quote(_ value: String, to text: inout [UInt8]) {
        text.append(UInt8(ascii: "\""))
        // In most texts there is nothing to escape.
        if value.utf8.allSatisfy({ $0 >= 0x20 && $0 < 0x7f && $0 != UInt8(ascii: "\"") && $0 != UInt8(ascii: "\\") }) {
            text.append(contentsOf: value.utf8)
        } else {
            for scalar in value.unicodeScalars { escape(scalar, to: &text) }
        }
        text.append(UInt8(ascii: "\""))
    }

    /// A document as it stands in a file, on one line, safe to show: characters that a terminal could act upon stand in its
    /// strings only, so each of them may be written as an escape.
    static func showing(document: String) -> String {
        guard document.unicodeScalars.contains(where: Escaping.isHidden) else { return document }
        var text: [UInt8] = []
        for scalar in document.unicodeScalars {
            if Escaping.isHidden(scalar) {
                escape(scalar, to: &text)
            } else {
                text.append(contentsOf: String(scalar).utf8)
            }
        }
        return String(decoding: text, as: UTF8.self)
    }

    private static func escape(_ scalar: Unicode.Scalar, to text: inout [UInt8]) {
        switch scalar {
        case "\"": text += "\\\"".utf8
        case "\\": text += "\\\\".utf8
        case "\n": text += "\\n".utf8
        case "\r": text += "\\r".utf8
        case "\t": text += "\\t".utf8
        default:
            guard Escaping.isHidden(scalar) else {
                text.append(contentsOf: String(scalar).utf8)
                return
            }
            for unit in String(scalar).utf16 {
                let digits = String(unit, radix: 16)
                text += "\\u\(String(repeating: "0", count: 4 - digits.count))\(digits)".utf8
            }
        }
    }

    static func == (left: JSONValue, right: JSONValue) -> Bool { left.compact == right.compact }
    func hash(into hasher: inout Hasher) { hasher.combine(compact) }
}
