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
    var compact: String {
        var text = ""
        write(to: &text, indent: nil)
        return text
    }

    /// Over several lines, indented by two blanks, for documents that people read too.
    var pretty: String {
        var text = ""
        write(to: &text, indent: 0)
        return text
    }

    private func write(to text: inout String, indent: Int?) {
        switch self {
        case .null: text += "null"
        case .bool(let value): text += value ? "true" : "false"
        case .integer(let value): text += String(value)
        case .number(let value): text += Self.decimal(value)
        case .string(let value): Self.quote(value, to: &text)
        case .array(let values):
            Self.list("[", "]", values, to: &text, indent: indent) { value, text, indent in
                value.write(to: &text, indent: indent)
            }
        case .object(let fields):
            Self.list("{", "}", fields, to: &text, indent: indent) { field, text, indent in
                Self.quote(field.0, to: &text)
                text += indent == nil ? ":" : ": "
                field.1.write(to: &text, indent: indent)
            }
        }
    }

    private static func list<Element>(
        _ open: String, _ close: String, _ elements: [Element], to text: inout String, indent: Int?,
        _ body: (Element, inout String, Int?) -> Void
    ) {
        text += open
        let inner = indent.map { $0 + 2 }
        for (index, element) in elements.enumerated() {
            if index > 0 { text += "," }
            if let inner { text += "\n" + String(repeating: " ", count: inner) }
            body(element, &text, inner)
        }
        if let indent, !elements.isEmpty { text += "\n" + String(repeating: " ", count: indent) }
        text += close
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
    private static func quote(_ value: String, to text: inout String) {
        text += "\""
        for scalar in value.unicodeScalars {
            switch scalar {
            case "\"": text += "\\\""
            case "\\": text += "\\\\"
            case "\n": text += "\\n"
            case "\r": text += "\\r"
            case "\t": text += "\\t"
            default:
                if Escaping.isHidden(scalar) {
                    for unit in String(scalar).utf16 {
                        let digits = String(unit, radix: 16)
                        text += "\\u" + String(repeating: "0", count: 4 - digits.count) + digits
                    }
                } else {
                    text.unicodeScalars.append(scalar)
                }
            }
        }
        text += "\""
    }

    static func == (left: JSONValue, right: JSONValue) -> Bool { left.compact == right.compact }
    func hash(into hasher: inout Hasher) { hasher.combine(compact) }
}
