/// The byte counts of a task or of a barrel at one moment.
public struct ByteCount: Codable, Sendable, Hashable {
    /// Bytes safely in the part file or the finished file.
    public var received: Int64
    /// `received` as it was at the previous report to the same listener; 0 at first.
    public var previousReceived: Int64
    /// The length of the whole, or `nil` while no server has told it.
    public var expected: Int64?
    /// The whole is longer than `expected`, by what no server has told yet. Only sums of several tasks are so.
    public var isLowerBound: Bool

    /// Counts as given; nothing is checked.
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

    /// Without `isLowerBound`, `expected` is the whole.
    public init(from decoder: any Decoder) throws {
        let values = try decoder.container(keyedBy: CodingKeys.self)
        received = try values.decode(Int64.self, forKey: .received)
        previousReceived = try values.decode(Int64.self, forKey: .previousReceived)
        expected = try values.decodeIfPresent(Int64.self, forKey: .expected)
        isLowerBound = try values.decodeIfPresent(Bool.self, forKey: .isLowerBound) ?? false
    }

    /// `received / expected` in 0...1, or `nil` while the length, or a part of it, is unknown. An empty whole counts as 1.
    public var fraction: Double? {
        guard let expected, !isLowerBound else { return nil }
        return expected > 0 ? min(1, Double(received) / Double(expected)) : 1
    }
}
