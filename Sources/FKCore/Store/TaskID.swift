import FKMiddleware

/// Names a task: SHA-256 of its URL, or of URL, newline and destination where it has a destination of its own.
///
/// Written as 64 lower-case hexadecimal digits; four machine words in memory.
public struct TaskID: Sendable, Hashable, Codable, CustomStringConvertible, Comparable {
    private var words: (UInt64, UInt64, UInt64, UInt64)

    /// - Parameters:
    ///   - url: the percent-encoded URL.
    ///   - destination: the absolute folder, `/`, and the file name where one was asked for; nil without a
    ///     destination of its own.
    public init(url: String, destination: String? = nil) {
        let bytes = Digester.bytes(of: destination.map { "\(url)\n\($0)" } ?? url, .sha256)
        self.init(bytes: bytes)
    }

    private init(bytes: [UInt8]) {
        func word(_ index: Int) -> UInt64 {
            bytes[index * 8..<index * 8 + 8].reduce(0) { $0 << 8 | UInt64($1) }
        }
        words = (word(0), word(1), word(2), word(3))
    }

    /// Reads 64 hexadecimal digits.
    public init?(hex: String) {
        let digits = Array(hex.utf8)
        guard digits.count == 64 else { return nil }
        var bytes: [UInt8] = []
        bytes.reserveCapacity(32)
        for index in stride(from: 0, to: 64, by: 2) {
            guard let high = Self.value(digits[index]), let low = Self.value(digits[index + 1]) else { return nil }
            bytes.append(high << 4 | low)
        }
        self.init(bytes: bytes)
    }

    private static func value(_ digit: UInt8) -> UInt8? {
        switch digit {
        case 0x30...0x39: digit - 0x30
        case 0x61...0x66: digit - 0x57
        default: nil
        }
    }

    public var hex: String {
        Digester.hex(
            [words.0, words.1, words.2, words.3].flatMap { word in (0..<8).map { UInt8(truncatingIfNeeded: word >> (56 - 8 * $0)) } })
    }

    /// The first 12 digits: enough to name a task to a person.
    public var short: String { String(hex.prefix(12)) }

    public var description: String { hex }

    public static func == (left: Self, right: Self) -> Bool { left.words == right.words }
    public static func < (left: Self, right: Self) -> Bool { left.words < right.words }
    public func hash(into hasher: inout Hasher) { hasher.combine(words.0) }

    public init(from decoder: any Decoder) throws {
        let container = try decoder.singleValueContainer()
        guard let id = Self(hex: try container.decode(String.self)) else {
            throw DecodingError.dataCorruptedError(in: container, debugDescription: "not a task id")
        }
        self = id
    }

    public func encode(to encoder: any Encoder) throws {
        var container = encoder.singleValueContainer()
        try container.encode(hex)
    }
}
