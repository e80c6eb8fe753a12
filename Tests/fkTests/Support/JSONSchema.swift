import Foundation

/// A JSON value whose kind is exact: `true` is no number.
enum JSONValue: Decodable, Hashable {
    case null
    case bool(Bool)
    case number(Double)
    case string(String)
    case array([JSONValue])
    case object([String: JSONValue])

    init(from decoder: any Decoder) throws {
        let container = try decoder.singleValueContainer()
        if container.decodeNil() {
            self = .null
        } else if let value = try? container.decode(Bool.self) {
            self = .bool(value)
        } else if let value = try? container.decode(Double.self) {
            self = .number(value)
        } else if let value = try? container.decode(String.self) {
            self = .string(value)
        } else if let value = try? container.decode([JSONValue].self) {
            self = .array(value)
        } else {
            self = .object(try container.decode([String: JSONValue].self))
        }
    }

    subscript(key: String) -> JSONValue? {
        if case .object(let members) = self { members[key] } else { nil }
    }

    var text: String? { if case .string(let text) = self { text } else { nil } }
    var list: [JSONValue] { if case .array(let list) = self { list } else { [] } }
    var members: [String: JSONValue] { if case .object(let members) = self { members } else { [:] } }

    /// The name of the value's type in a schema.
    var type: String {
        switch self {
        case .null: "null"
        case .bool: "boolean"
        case .number(let number): number == number.rounded() ? "integer" : "number"
        case .string: "string"
        case .array: "array"
        case .object: "object"
        }
    }
}

/// A validator for the keywords that Docs/fk.schema.json uses. It is stricter than the standard: a member that the schema
/// does not name is a fault.
struct JSONSchema {
    private static let keywords: Set<String> = [
        "$schema", "$defs", "$ref", "title", "description", "type", "enum", "const", "pattern", "required",
        "properties", "additionalProperties", "items", "oneOf", "anyOf",
    ]

    let root: JSONValue

    init(_ data: Data) throws { root = try JSONDecoder().decode(JSONValue.self, from: data) }

    var definitions: [String] { (root["$defs"]?.members.keys).map { $0.sorted() } ?? [] }

    /// The faults of a document; none if it is as the definition says.
    func faults(in document: JSONValue, as definition: String) -> [String] {
        check(document, .object(["$ref": .string("#/$defs/\(definition)")]), definition)
    }

    private func check(_ value: JSONValue, _ schema: JSONValue, _ place: String) -> [String] {
        let unknown = schema.members.keys.filter { !Self.keywords.contains($0) }
        guard unknown.isEmpty else { return ["\(place): the validator does not know \(unknown)"] }
        if let name = schema["$ref"]?.text?.split(separator: "/").last {
            guard let target = root["$defs"]?[String(name)] else { return ["\(place): there is no \(name)"] }
            return check(value, target, place)
        }
        for keyword in ["oneOf", "anyOf"] {
            guard let choices = schema[keyword]?.list else { continue }
            let results = choices.map { check(value, $0, place) }
            let fitting = results.count { $0.isEmpty }
            if fitting == 0 || (keyword == "oneOf" && fitting > 1) {
                return ["\(place): \(fitting) of \(keyword) fit"] + results.flatMap(\.self)
            }
            return []
        }
        return checkType(value, schema, place) + checkValue(value, schema, place) + checkChildren(value, schema, place)
    }

    private func checkType(_ value: JSONValue, _ schema: JSONValue, _ place: String) -> [String] {
        guard let type = schema["type"] else { return [] }
        let allowed = type.text.map { [$0] } ?? type.list.compactMap(\.text)
        let fits = allowed.contains(value.type) || (value.type == "integer" && allowed.contains("number"))
        return fits ? [] : ["\(place): \(value.type) instead of \(allowed.joined(separator: " or "))"]
    }

    private func checkValue(_ value: JSONValue, _ schema: JSONValue, _ place: String) -> [String] {
        if let allowed = schema["enum"]?.list, !allowed.contains(value) { return ["\(place): \(value) is not in enum"] }
        if let only = schema["const"], only != value { return ["\(place): \(value) is not \(only)"] }
        if let pattern = schema["pattern"]?.text, let text = value.text,
            text.range(of: pattern, options: .regularExpression) == nil
        {
            return ["\(place): \(text) is not like \(pattern)"]
        }
        return []
    }

    private func checkChildren(_ value: JSONValue, _ schema: JSONValue, _ place: String) -> [String] {
        var faults: [String] = []
        if case .object(let members) = value {
            for name in (schema["required"]?.list ?? []).compactMap(\.text) where members[name] == nil {
                faults.append("\(place): \(name) is missing")
            }
            for (name, member) in members {
                if let known = schema["properties"]?[name] ?? schema["additionalProperties"] {
                    faults += check(member, known, "\(place).\(name)")
                } else {
                    faults.append("\(place): \(name) is not in the schema")
                }
            }
        }
        if case .array(let elements) = value, let items = schema["items"] {
            for (index, element) in elements.enumerated() { faults += check(element, items, "\(place)[\(index)]") }
        }
        return faults
    }
}
