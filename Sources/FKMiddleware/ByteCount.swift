/// The byte counts of a task or of a barrel at one moment.
public struct ByteCount: Codable, Sendable, Hashable {
    /// Bytes safely in the part file or the finished file.
    public var received: Int64
    /// `received` as it was at the previous report to the same listener; 0 at first.
    public var previousReceived: Int64
    /// The length of the whole, or `nil` while no server has told it.
    public var expected: Int64?

    /// Counts as given; nothing is checked.
    public init(received: Int64 = 0, previousReceived: Int64 = 0, expected: Int64? = nil) {
        self.received = received
        self.previousReceived = previousReceived
        self.expected = expected
    }

    /// `received / expected` in 0...1, or `nil` while the length is unknown. An empty whole counts as 1.
    public var fraction: Double? {
        guard let expected else { return nil }
        return expected > 0 ? min(1, Double(received) / Double(expected)) : 1
    }
}
