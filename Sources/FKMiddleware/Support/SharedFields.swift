/// The values that copies of a structure share until one of them changes. The structure costs one reference, and so does a
/// copy of it, also where its members are not known to the compiler: in another target.
package final class SharedFields<Fields: Sendable>: @unchecked Sendable {
    /// Changed only while one structure has the object (`only`).
    package var fields: Fields

    @inlinable
    package init(_ fields: Fields) { self.fields = fields }

    /// The object for a change: a new one if another structure has it too.
    @inlinable
    @inline(__always)
    package static func only(_ shared: inout SharedFields) -> SharedFields {
        if !isKnownUniquelyReferenced(&shared) { shared = SharedFields(shared.fields) }
        return shared
    }
}

extension SharedFields: Equatable where Fields: Equatable {
    @inlinable
    package static func == (one: SharedFields, other: SharedFields) -> Bool {
        one === other || one.fields == other.fields
    }
}

extension SharedFields: Hashable where Fields: Hashable {
    @inlinable
    package func hash(into hasher: inout Hasher) { fields.hash(into: &hasher) }
}
