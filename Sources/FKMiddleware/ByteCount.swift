/// The byte counts of a task or of a barrel at one moment.
public struct ByteCount: Codable, Sendable, Hashable {
    /// Bytes stored in the part file or in the finished file.
    public var received: Int64
    /// The value of `received` in the previous report to the same listener; 0 in the first report.
    public var previousReceived: Int64
    /// The total length in bytes. `nil` until a server has reported it.
    public var expected: Int64?
    /// True when the total is at least `expected`, because the length of some parts is still unknown. Only sums of
    /// several tasks set it. The default is false.
    public var isLowerBound: Bool

    /// Creates a count from the given values. It does not check them.
    public init(
        received: Int64 = 0, previousReceived: Int64 = 0, expected: Int64? = nil, isLowerBound: Bool = false
    ) {
        self.received = received
        self.previousReceived = previousReceived
        self.expected = expected
        self.isLowerBound = isLowerBound
    }

    private enum CodingKeys: String, CodingKey {
        case received, previousReceived, expected, isLowerBound
    }

    /// Decodes a count. A missing `isLowerBound` counts as false.
    ///
    /// - Throws: `DecodingError` when a field is missing or has another type.
    public init(from decoder: any Decoder) throws {
        let values = try decoder.container(keyedBy: CodingKeys.self)
        received = try values.decode(Int64.self, forKey: .received)
        previousReceived = try values.decode(Int64.self, forKey: .previousReceived)
        expected = try values.decodeIfPresent(Int64.self, forKey: .expected)
        isLowerBound = try values.decodeIfPresent(Bool.self, forKey: .isLowerBound) ?? false
    }

    /// `received / expected`, in 0...1. `nil` while the length, or the length of a part, is unknown. An empty file
    /// counts as 1.
    public var fraction: Double? {
        guard let expected, !isLowerBound else { return nil }
        return expected > 0 ? min(1, Double(received) / Double(expected)) : 1
    }
}
