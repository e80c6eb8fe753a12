/// A text that equals only the same bytes.
///
/// `String` compares by canonical equivalence: `é` as one scalar and as a letter with a mark are equal to it, and two
/// names to Linux. Whatever names a file, a folder or a barrel is a key by its bytes.
package struct ExactText: Sendable, Hashable, CustomStringConvertible {
    package let text: String
    package var description: String { text }

    package init(_ text: String) { self.text = text }

    package static func == (one: ExactText, other: ExactText) -> Bool { one.text.isExactly(other.text) }

    package func hash(into hasher: inout Hasher) {
        var text = text
        text.withUTF8 { hasher.combine(bytes: UnsafeRawBufferPointer($0)) }
    }
}

/// A dictionary whose keys are texts compared by their bytes.
package struct ExactMap<Value> {
    private var storage: [ExactText: Value] = [:]

    package init() {}

    package subscript(_ key: String) -> Value? {
        get { storage[ExactText(key)] }
        _modify { yield &storage[ExactText(key)] }
    }

    package subscript(_ key: String, default value: @autoclosure () -> Value) -> Value {
        get { storage[ExactText(key), default: value()] }
        _modify { yield &storage[ExactText(key), default: value()] }
    }

    package var count: Int { storage.count }
    package var isEmpty: Bool { storage.isEmpty }
    package var values: Dictionary<ExactText, Value>.Values { storage.values }
    package var pairs: some Sequence<(key: String, value: Value)> { storage.lazy.map { ($0.key.text, $0.value) } }

    /// Returns what was removed; nil when the key was not there.
    @discardableResult
    package mutating func remove(_ key: String) -> Value? { storage.removeValue(forKey: ExactText(key)) }

    package mutating func removeAll() { storage.removeAll() }
}

extension ExactMap: Sendable where Value: Sendable {}

extension StringProtocol {
    /// The same bytes, where `==` is satisfied with canonical equivalence.
    package func isExactly(_ other: some StringProtocol) -> Bool { utf8.elementsEqual(other.utf8) }
}

extension Sequence<String> {
    /// One of them has the same bytes.
    package func containsExactly(_ text: String) -> Bool { contains { $0.isExactly(text) } }
}
