/// The number by which clients of aria2's RPC name a task: 16 hexadecimal digits. It is the beginning of the task's id, unless
/// the client chose one, which the task keeps as an attribute.
package enum GID {
    /// The attribute with the gid that a client chose.
    package static let attribute = "gid"

    /// True for 16 hexadecimal digits in either case, not all zero.
    package static func isWhole(_ text: String) -> Bool {
        text.utf8.count == 16 && (number(text) ?? 0) != 0
    }

    /// The number of 1 to 16 hexadecimal digits in either case; nil for any other text.
    package static func number(_ text: some StringProtocol) -> UInt64? {
        guard (1...16).contains(text.utf8.count),
            text.utf8.allSatisfy({ (0x30...0x39).contains($0) || (0x61...0x66).contains($0 | 0x20) })
        else { return nil }
        return UInt64(text, radix: 16)
    }

    /// The 16 digits of a number, in lower case.
    package static func text(_ number: UInt64) -> String {
        let digits = String(number, radix: 16)
        return String(repeating: "0", count: 16 - digits.count) + digits
    }
}
