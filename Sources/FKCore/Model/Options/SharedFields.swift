/// The values that copies of a structure share until one of them changes. The structure costs one reference, and so does a
/// copy of it, also where its members are not known to the compiler: in another target.
final class SharedFields<Fields: Hashable & Sendable>: @unchecked Sendable, Hashable {
    /// Changed only while one structure has the object (`only`).
    var fields: Fields

    init(_ fields: Fields) { self.fields = fields }

    /// The object for a change: a new one if another structure has it too.
    @inline(__always)
    static func only(_ shared: inout SharedFields) -> SharedFields {
        if !isKnownUniquelyReferenced(&shared) { shared = SharedFields(shared.fields) }
        return shared
    }

    static func == (one: SharedFields, other: SharedFields) -> Bool {
        one === other || one.fields == other.fields
    }

    func hash(into hasher: inout Hasher) { fields.hash(into: &hasher) }
}
