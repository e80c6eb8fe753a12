/// The values that copies of a structure share until one of them changes. The structure costs one reference, and so does a
/// copy of it, also where its members are not known to the compiler: in another target.
///
/// The class itself asks nothing of its fields: the runtime would look for the conformance in all that the program has, 0.1 ms at
/// each start.
final class SharedFields<Fields> {
    /// Changed only while one structure has the object (`only`).
    var fields: Fields

    init(_ fields: Fields) { self.fields = fields }

    /// The object for a change: a new one if another structure has it too.
    @inline(__always)
    static func only(_ shared: inout SharedFields) -> SharedFields {
        if !isKnownUniquelyReferenced(&shared) { shared = SharedFields(shared.fields) }
        return shared
    }
}

extension SharedFields: @unchecked Sendable where Fields: Sendable {}

extension SharedFields: Equatable where Fields: Equatable {
    static func == (one: SharedFields, other: SharedFields) -> Bool {
        one === other || one.fields == other.fields
    }
}

extension SharedFields: Hashable where Fields: Hashable {
    func hash(into hasher: inout Hasher) { fields.hash(into: &hasher) }
}
