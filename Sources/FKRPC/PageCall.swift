import FKMiddleware

/// The parameters of a method of the page: one object whose members all have a known name and the right type.
struct PageCall {
    private let members: [String: JSON]
    let method: String

    /// - Parameter allowed: the names of the members that the method has.
    init(_ method: String, _ params: [JSON], allowed: Set<String>) throws(RPCError) {
        self.method = method
        guard params.count <= 1 else { throw RPCError("\(method) takes one object.") }
        guard let object = (params.first ?? .object([])).object else {
            throw RPCError("\(method) takes an object: the parameter has another type.")
        }
        var members: [String: JSON] = [:]
        for member in object {
            guard allowed.contains(member.name) else {
                throw RPCError("\(method) has no member \(member.name.visible).")
            }
            members[member.name] = member.value
        }
        self.members = members
    }

    func has(_ name: String) -> Bool { members[name] != nil }
    func isNull(_ name: String) -> Bool { members[name] == .null }

    /// A text; nil if it is left out or null.
    func text(_ name: String) throws(RPCError) -> String? { try value(name, "a text", \.string) }

    /// A text that must be there.
    func needed(_ name: String) throws(RPCError) -> String {
        guard let text = try text(name) else { throw RPCError("\(method) needs the member \(name).") }
        return text
    }

    func truth(_ name: String) throws(RPCError) -> Bool { try value(name, "true or false", \.bool) ?? false }

    func texts(_ name: String) throws(RPCError) -> [String]? {
        guard let values = try value(name, "an array of texts", \.array) else { return nil }
        let texts = values.compactMap(\.string)
        guard texts.count == values.count else { throw RPCError("\(method): \(name) is an array of texts.") }
        return texts
    }

    /// An array of any values; nil if it is left out or null.
    func objects(_ name: String) throws(RPCError) -> [JSON]? { try value(name, "an array of objects", \.array) }

    func integer(_ name: String, in range: ClosedRange<Int>, or standard: Int) throws(RPCError) -> Int {
        guard let number = try value(name, "a whole number", \.integer) else { return standard }
        guard range.contains(Int(number)) else {
            throw RPCError("\(method): \(name) must be from \(range.lowerBound) to \(range.upperBound).")
        }
        return Int(number)
    }

    func number(_ name: String, in range: ClosedRange<Double>, or standard: Double) throws(RPCError) -> Double {
        guard let number = try value(name, "a number", \.double) else { return standard }
        guard range.contains(number) else {
            throw RPCError("\(method): \(name) must be from \(range.lowerBound) to \(range.upperBound).")
        }
        return number
    }

    private func value<Value>(
        _ name: String, _ kind: String, _ read: (JSON) -> Value?
    ) throws(RPCError) -> Value? {
        guard let given = members[name], given != .null else { return nil }
        guard let value = read(given) else { throw RPCError("\(method): \(name) is \(kind).") }
        return value
    }
}
