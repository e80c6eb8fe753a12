import FKCore
import FKMiddleware

/// Text in small letters, as bytes, for searches in long lists.
struct SearchText: Sendable, Hashable {
    let bytes: [UInt8]

    /// The text of a person.
    init(_ text: String) { bytes = Self.lowercased(text) }

    /// Everything that a search for a task looks through: name, address without secrets, barrels. NUL separates them, so that no
    /// match begins in one and ends in another.
    init(of row: TaskRow) {
        bytes = Self.lowercased(([row.name, row.url.masked] + row.barrels).joined(separator: "\0"))
    }

    /// ASCII, nearly all of the texts, without the Unicode tables.
    private static func lowercased(_ text: String) -> [UInt8] {
        var bytes = Array(text.utf8)
        for index in bytes.indices {
            switch bytes[index] {
            case UInt8(ascii: "A")...UInt8(ascii: "Z"): bytes[index] |= 0x20
            case 0x80...: return Array(text.lowercased().utf8)
            default: break
            }
        }
        return bytes
    }

    func contains(_ other: SearchText) -> Bool {
        bytes.withUnsafeBytes { own in other.bytes.withUnsafeBytes { own.firstRange(of: $0) != nil } }
    }
}
