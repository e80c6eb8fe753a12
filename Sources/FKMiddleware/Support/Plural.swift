/// Formats counts for messages.
package enum Plural {
    /// The count and its noun: `1 byte`, `2 bytes`.
    package static func count(_ count: some BinaryInteger, _ noun: String) -> String {
        "\(count) \(noun)\(count == 1 ? "" : "s")"
    }
}
