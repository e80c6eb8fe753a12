/// The number of attempts for a failed task and the delays between them.
public struct RetryPolicy: Codable, Sendable, Hashable {
    /// The maximum number of attempts, including the first, 1...1001. The default is 5. A plan with mirrors gets at
    /// least one attempt for each entry.
    public var maxAttempts: Int {
        didSet { maxAttempts = min(max(maxAttempts, 1), 1001) }
    }
    /// Seconds before the second attempt, doubled for each later one, 0...3600. The default is 1.
    public var baseDelay: Double {
        didSet { baseDelay = Self.clamp(baseDelay, 0...3600) }
    }
    /// The maximum of that delay in seconds, 0...86400. The default is 60.
    public var maxDelay: Double {
        didSet { maxDelay = Self.clamp(maxDelay, 0...86_400) }
    }
    /// The random share that is subtracted from a delay, 0...1, so that clients do not all retry at once. The default
    /// is 0.5.
    public var jitter: Double {
        didSet { jitter = Self.clamp(jitter, 0...1) }
    }
    /// The maximum wait for a server's Retry-After in seconds, 0...86400. The default is 600.
    public var maxRetryAfter: Double {
        didSet { maxRetryAfter = Self.clamp(maxRetryAfter, 0...86_400) }
    }

    /// Creates a policy. Values outside their ranges are moved to the nearer end.
    public init(
        maxAttempts: Int = 5, baseDelay: Double = 1, maxDelay: Double = 60, jitter: Double = 0.5,
        maxRetryAfter: Double = 600
    ) {
        self.maxAttempts = min(max(maxAttempts, 1), 1001)
        self.baseDelay = Self.clamp(baseDelay, 0...3600)
        self.maxDelay = Self.clamp(maxDelay, 0...86_400)
        self.jitter = Self.clamp(jitter, 0...1)
        self.maxRetryAfter = Self.clamp(maxRetryAfter, 0...86_400)
    }

    /// Decodes a policy. Missing keys take their defaults, and values are moved into their ranges.
    public init(from decoder: any Decoder) throws {
        let container = try decoder.container(keyedBy: CodingKeys.self)
        let standard = Self()
        self.init(
            maxAttempts: try container.decodeIfPresent(Int.self, forKey: .maxAttempts) ?? standard.maxAttempts,
            baseDelay: try container.decodeIfPresent(Double.self, forKey: .baseDelay) ?? standard.baseDelay,
            maxDelay: try container.decodeIfPresent(Double.self, forKey: .maxDelay) ?? standard.maxDelay,
            jitter: try container.decodeIfPresent(Double.self, forKey: .jitter) ?? standard.jitter,
            maxRetryAfter: try container.decodeIfPresent(Double.self, forKey: .maxRetryAfter) ?? standard.maxRetryAfter)
    }

    private static func clamp(_ value: Double, _ range: ClosedRange<Double>) -> Double {
        value.isNaN ? range.lowerBound : min(max(value, range.lowerBound), range.upperBound)
    }
}
