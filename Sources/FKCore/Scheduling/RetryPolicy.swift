/// How often and how patiently a failed task is tried again.
public struct RetryPolicy: Codable, Sendable, Hashable {
    /// Attempts in all, the first included, 1...1001. Default 5. Every entry of a plan with mirrors gets its one
    /// attempt even where that makes more.
    public var maxAttempts: Int {
        didSet { maxAttempts = min(max(maxAttempts, 1), 1001) }
    }
    /// Seconds before the second attempt; doubled for each one after it. Default 1, 0...3600.
    public var baseDelay: Double {
        didSet { baseDelay = Self.clamp(baseDelay, 0...3600) }
    }
    /// The longest such delay in seconds. Default 60, 0...86400.
    public var maxDelay: Double {
        didSet { maxDelay = Self.clamp(maxDelay, 0...86_400) }
    }
    /// The part of a delay that chance may take away, 0...1, so that clients do not come back all at once. Default 0.5.
    public var jitter: Double {
        didSet { jitter = Self.clamp(jitter, 0...1) }
    }
    /// A server's Retry-After counts for at most so many seconds. Default 600, 0...86400.
    public var maxRetryAfter: Double {
        didSet { maxRetryAfter = Self.clamp(maxRetryAfter, 0...86_400) }
    }

    /// Values outside their ranges are moved to the nearer end.
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

    /// Reads what `encode` wrote; keys that are missing take their defaults, values are moved into their ranges.
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
