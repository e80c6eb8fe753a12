import Foundation

/// A text that is equal only to the same bytes.
///
/// `String` compares by canonical equivalence: to it, `é` as one scalar equals `e` with a combining mark. To Linux
/// these are two names. Names of files, folders and barrels are therefore keys by their bytes.
package struct ExactText: Sendable, Hashable, CustomStringConvertible {
    package let text: String
    package var description: String { text }

    package init(_ text: String) { self.text = text }

    /// Compares the UTF-8 bytes.
    package static func == (one: ExactText, other: ExactText) -> Bool { one.text.isExactly(other.text) }

    package func hash(into hasher: inout Hasher) {
        var text = text
        text.withUTF8 { hasher.combine(bytes: UnsafeRawBufferPointer($0)) }
    }
}

extension ExactText {
    /// A dictionary with texts as keys, which are compared by their bytes.
    package struct Map<Value> {
        private var storage: [ExactText: Value] = [:]

        package init() {}

        /// The value of a key; nil if the key is missing. Setting nil removes the key.
        package subscript(_ key: String) -> Value? {
            get { storage[ExactText(key)] }
            _modify { yield &storage[ExactText(key)] }
        }

        /// The value of a key; `value` if the key is missing.
        package subscript(_ key: String, default value: @autoclosure () -> Value) -> Value {
            get { storage[ExactText(key), default: value()] }
            _modify { yield &storage[ExactText(key), default: value()] }
        }

        package var count: Int { storage.count }
        package var isEmpty: Bool { storage.isEmpty }
        /// The values, in no particular order.
        package var values: Dictionary<ExactText, Value>.Values { storage.values }
        /// The keys with their values, in no particular order.
        package var pairs: some Sequence<(key: String, value: Value)> { storage.lazy.map { ($0.key.text, $0.value) } }

        /// Removes a key and returns its value; nil if the key is missing.
        @discardableResult
        package mutating func remove(_ key: String) -> Value? { storage.removeValue(forKey: ExactText(key)) }

        package mutating func removeAll() { storage.removeAll() }
    }
}

extension ExactText.Map: Sendable where Value: Sendable {}

extension StringProtocol {
    /// True when both have the same UTF-8 bytes. `==` compares by canonical equivalence.
    package func isExactly(_ other: some StringProtocol) -> Bool { utf8.elementsEqual(other.utf8) }
}

extension String {
    /// True when both have the same UTF-8 bytes. Comparing them one by one took 2 % of a small file's instructions.
    package func isExactly(_ other: String) -> Bool {
        guard utf8.count == other.utf8.count else { return false }
        let areSame = utf8.withContiguousStorageIfAvailable { one in
            other.utf8.withContiguousStorageIfAvailable { two in
                one.isEmpty || memcmp(one.baseAddress!, two.baseAddress!, one.count) == 0
            }
        }
        return areSame.flatMap(\.self) ?? utf8.elementsEqual(other.utf8)
    }
}

extension Sequence<String> {
    /// True when an element has the same UTF-8 bytes as `text`.
    package func containsExactly(_ text: String) -> Bool { contains { $0.isExactly(text) } }
}
