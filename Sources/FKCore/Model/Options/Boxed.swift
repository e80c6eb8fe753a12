/// Stores an optional value that is rarely set in a separate box, so that nil takes one word instead of the size of
/// the value. Copies share the box.
@propertyWrapper
struct Boxed<Value: Sendable & Hashable>: Sendable, Hashable {
    private final class Box: Sendable {
        let value: Value
        init(_ value: Value) { self.value = value }
    }

    private var box: Box?

    /// Boxes the value; nil takes no box.
    init(wrappedValue: Value?) { box = wrappedValue.map(Box.init) }

    /// The value. Setting it makes a new box.
    var wrappedValue: Value? {
        get { box?.value }
        set { box = newValue.map(Box.init) }
    }

    /// Reads a part of the value, without a copy of the whole.
    func read<Part>(_ body: (Value) -> Part?) -> Part? { box.flatMap { body($0.value) } }

    /// True if there is a value. It does not copy the value.
    var isThere: Bool { box != nil }

    /// Compares the values, not the boxes.
    static func == (one: Self, other: Self) -> Bool {
        one.box === other.box || one.box?.value == other.box?.value
    }

    /// Hashes the value.
    func hash(into hasher: inout Hasher) { hasher.combine(box?.value) }
}
