extension BinaryInteger {
    /// The number as a count of `noun`, for messages: `1 byte`, `2 bytes`.
    package func plural(_ noun: String) -> String {
        "\(self) \(noun)\(self == 1 ? "" : "s")"
    }
}
