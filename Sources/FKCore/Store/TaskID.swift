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

    /// Reads 64 lower-case hexadecimal digits.
    public init?(hex: String) {
        var hex = hex
        guard let id = hex.withUTF8({ Self(hexDigits: $0) }) else { return nil }
        self = id
    }

    /// Reads 64 lower-case hexadecimal digits in ASCII.
    package init?(hexDigits digits: UnsafeBufferPointer<UInt8>) {
        guard digits.count == 64 else { return nil }
        words = (0, 0, 0, 0)
        var word: UInt64 = 0
        for index in 0..<64 {
            guard let value = Self.value(digits[index]) else { return nil }
            word = word << 4 | UInt64(value)
            switch index {
            case 15: words.0 = word
            case 31: words.1 = word
            case 47: words.2 = word
            case 63: words.3 = word
            default: break
            }
        }
    }

    private static func value(_ digit: UInt8) -> UInt8? {
        switch digit {
        case 0x30...0x39: digit - 0x30
        case 0x61...0x66: digit - 0x57
        default: nil
        }
    }

    /// 64 lower-case hexadecimal digits.
    public var hex: String {
        String(unsafeUninitializedCapacity: 64) { buffer in
            let words = [words.0, words.1, words.2, words.3]
            for index in 0..<64 {
                let digit = UInt8(truncatingIfNeeded: words[index >> 4] >> UInt64(60 - 4 * (index & 15))) & 15
                buffer[index] = digit < 10 ? 0x30 + digit : 0x57 + digit
            }
            return 64
        }
    }

    /// The first 16 digits as a number, as good as a hash.
    package var leadingWord: UInt64 { words.0 }

    /// The first 12 digits: enough to name a task to a person.
    public var short: String { String(hex.prefix(12)) }

    /// The same as `hex`.
    public var description: String { hex }

    public static func == (left: Self, right: Self) -> Bool { left.words == right.words }
    /// The order of the hexadecimal forms.
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
