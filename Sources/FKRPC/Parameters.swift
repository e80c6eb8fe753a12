/// The parameters of a call, by position and without the secret. The messages are aria2's.
struct Parameters {
    let values: [JSON]

    init(_ values: [JSON]) { self.values = values }

    /// A string that must be there.
    func string(_ index: Int) throws(RPCError) -> String {
        guard let text = try present(index).string else { throw wrongType(index) }
        return text
    }

    /// An array that must be there.
    func array(_ index: Int) throws(RPCError) -> [JSON] {
        guard let values = try present(index).array else { throw wrongType(index) }
        return values
    }

    /// An array; empty if it is left out.
    func optionalArray(_ index: Int) throws(RPCError) -> [JSON] {
        index < values.count ? try array(index) : []
    }

    /// An object that must be there.
    func object(_ index: Int) throws(RPCError) -> [JSON.Member] {
        guard let members = try present(index).object else { throw wrongType(index) }
        return members
    }

    /// An object; empty if it is left out.
    func optionalObject(_ index: Int) throws(RPCError) -> [JSON.Member] {
        index < values.count ? try object(index) : []
    }

    /// A whole number that must be there.
    ///
    /// - Parameter least: the smallest allowed number; nil, the default, allows all.
    func integer(_ index: Int, atLeast least: Int? = nil) throws(RPCError) -> Int {
        guard let number = try present(index).integer else { throw wrongType(index) }
        if let least, number < least {
            throw RPCError(
                "The integer parameter at \(index) has invalid value: the value must be greater than or equal to \(least)."
            )
        }
        return Int(number)
    }

    /// The position for a new task; nil if it is left out.
    func position(_ index: Int) throws(RPCError) -> Int? {
        guard index < values.count else { return nil }
        let position = try integer(index)
        guard position >= 0 else { throw RPCError("Position must be greater than or equal to 0.") }
        return position
    }

    /// The strings of an array; other elements are ignored.
    func strings(_ index: Int) throws(RPCError) -> [String] { try array(index).compactMap(\.string) }

    private func present(_ index: Int) throws(RPCError) -> JSON {
        guard index < values.count else {
            throw RPCError("The parameter at \(index) is required but missing.")
        }
        return values[index]
    }

    private func wrongType(_ index: Int) -> RPCError { RPCError("The parameter at \(index) has wrong type.") }
}
