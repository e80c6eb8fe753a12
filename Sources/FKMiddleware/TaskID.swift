/// The id of a task: the SHA-256 of its URL, or of URL, newline and destination if it has a destination of its own.
///
/// Its text form is 64 lower-case hexadecimal digits.
public struct TaskID: Sendable, Hashable, Codable, CustomStringConvertible, Comparable {
    private var words: (UInt64, UInt64, UInt64, UInt64)

    /// Computes the id of a task.
    ///
    /// - Parameters:
    ///   - url: the percent-encoded URL.
    ///   - destination: the absolute folder, `/`, and the file name if one was set; nil, the default, for a task
    ///     without a destination of its own.
    public init(url: String, destination: String? = nil) {
        let bytes = Digester.bytes(of: destination.map { "\(url)\n\($0)" } ?? url, .sha256)
        self.init(bytes: bytes)
    }

    private init(bytes: [UInt8]) {
        words = bytes.withUnsafeBytes { bytes in
            func word(_ index: Int) -> UInt64 {
                UInt64(bigEndian: bytes.loadUnaligned(fromByteOffset: index * 8, as: UInt64.self))
            }
            return (word(0), word(1), word(2), word(3))
        }
    }

    /// Parses 64 lower-case hexadecimal digits; nil for any other text.
    public init?(hex: String) {
        var hex = hex
        guard let id = hex.withUTF8({ Self(hexDigits: $0) }) else { return nil }
        self = id
    }

    /// Parses 64 lower-case hexadecimal digits in ASCII; nil for any other bytes.
    package init?(hexDigits digits: UnsafeBufferPointer<UInt8>) {
        guard digits.count == 64 else { return nil }
        let bytes = UnsafeRawBufferPointer(digits)
        func word(_ place: Int) -> UInt64? {
            guard let high = Self.half(UInt64(bigEndian: bytes.loadUnaligned(fromByteOffset: place, as: UInt64.self))),
                let low = Self.half(UInt64(bigEndian: bytes.loadUnaligned(fromByteOffset: place + 8, as: UInt64.self)))
            else { return nil }
            return high << 32 | low
        }
        guard let first = word(0), let second = word(16), let third = word(32), let fourth = word(48) else {
            return nil
        }
        words = (first, second, third, fourth)
    }

    /// The 32 bits of eight digits in one word, the reverse of `digits`; nil for anything else.
    private static func half(_ digits: UInt64) -> UInt64? {
        let letters = digits >> 6 & 0x0101_0101_0101_0101
        var packed = (digits & 0x0f0f_0f0f_0f0f_0f0f) &+ letters &* 9 & 0x0f0f_0f0f_0f0f_0f0f
        packed = (packed | packed >> 4) & 0x00ff_00ff_00ff_00ff
        packed = (packed | packed >> 8) & 0x0000_ffff_0000_ffff
        packed = (packed | packed >> 16) & 0x0000_0000_ffff_ffff
        return Self.digits(packed) == digits ? packed : nil
    }

    /// The id as 64 lower-case hexadecimal digits.
    public var hex: String {
        String(unsafeUninitializedCapacity: 64) { buffer in
            writeHex(into: buffer)
            return 64
        }
    }

    /// Writes the 64 digits to the start of the buffer, which must have space for them.
    package func writeHex(into buffer: UnsafeMutableBufferPointer<UInt8>) {
        let bytes = UnsafeMutableRawBufferPointer(buffer)
        func write(_ word: UInt64, at place: Int) {
            bytes.storeBytes(of: Self.digits(word >> 32).bigEndian, toByteOffset: place, as: UInt64.self)
            bytes.storeBytes(of: Self.digits(word & 0xffff_ffff).bigEndian, toByteOffset: place + 8, as: UInt64.self)
        }
        write(words.0, at: 0)
        write(words.1, at: 16)
        write(words.2, at: 32)
        write(words.3, at: 48)
    }

    /// The eight digits of 32 bits, in one word: each half byte is spread to a byte and converted to its character.
    private static func digits(_ half: UInt64) -> UInt64 {
        var spread = (half | half << 16) & 0x0000_ffff_0000_ffff
        spread = (spread | spread << 8) & 0x00ff_00ff_00ff_00ff
        spread = (spread | spread << 4) & 0x0f0f_0f0f_0f0f_0f0f
        let letters = (spread &+ 0x0606_0606_0606_0606) >> 4 & 0x0101_0101_0101_0101
        return spread &+ 0x3030_3030_3030_3030 &+ letters &* 0x27
    }

    /// The bits of the id, for storing it.
    package var bits: SIMD4<UInt64> { SIMD4(words.0, words.1, words.2, words.3) }

    package init(bits: SIMD4<UInt64>) { words = (bits[0], bits[1], bits[2], bits[3]) }

    /// The first 16 digits as a number, which is as good as a hash.
    package var leadingWord: UInt64 { words.0 }

    /// The first 12 digits, for display. They are enough to name a task.
    public var short: String { leadingDigits(12) }

    /// The first digits, at most 16.
    package func leadingDigits(_ count: Int) -> String {
        String(unsafeUninitializedCapacity: 16) { buffer in
            writeLeading(into: UnsafeMutableRawBufferPointer(buffer))
            return min(count, 16)
        }
    }

    private func writeLeading(into bytes: UnsafeMutableRawBufferPointer) {
        bytes.storeBytes(of: Self.digits(words.0 >> 32).bigEndian, as: UInt64.self)
        bytes.storeBytes(of: Self.digits(words.0 & 0xffff_ffff).bigEndian, toByteOffset: 8, as: UInt64.self)
    }

    /// Same as `hex`.
    public var description: String { hex }

    /// Compares all digits.
    public static func == (left: Self, right: Self) -> Bool { left.words == right.words }
    /// The order of the hexadecimal forms.
    public static func < (left: Self, right: Self) -> Bool { left.words < right.words }
    /// Hashes the first 16 digits.
    public func hash(into hasher: inout Hasher) { hasher.combine(words.0) }

    /// Decodes 64 lower-case hexadecimal digits.
    ///
    /// - Throws: `DecodingError` for any other text.
    public init(from decoder: any Decoder) throws {
        let container = try decoder.singleValueContainer()
        guard let id = Self(hex: try container.decode(String.self)) else {
            throw DecodingError.dataCorruptedError(in: container, debugDescription: "not a task id")
        }
        self = id
    }

    /// Encodes the 64 digits.
    ///
    /// - Throws: the encoder's error.
    public func encode(to encoder: any Encoder) throws {
        var container = encoder.singleValueContainer()
        try container.encode(hex)
    }
}
