import FKMiddleware

/// The number of attempts for a failed task and the delays between them. Values outside their ranges are clamped.
public struct RetryPolicy: Codable, Sendable, Hashable {
    /// The maximum number of attempts, including the first, 1...1001. The default is 5. A plan with mirrors gets at
    /// least one attempt for each entry.
    public var maxAttempts: Int {
        didSet { maxAttempts = min(max(maxAttempts, 1), 1001) }
    }
    /// The time before the second attempt, doubled for each later one, 0 to an hour. The default is one second.
    public var baseDelay: Duration {
        get { Duration(inSeconds: baseDelaySeconds) }
        set { baseDelaySeconds = newValue.inSeconds }
    }
    /// The maximum of that delay, 0 to a day. The default is one minute.
    public var maxDelay: Duration {
        get { Duration(inSeconds: maxDelaySeconds) }
        set { maxDelaySeconds = newValue.inSeconds }
    }
    /// The random share that is subtracted from a delay, 0...1, so that clients do not all retry at once. The default
    /// is 0.5.
    public var jitter: Double {
        didSet { jitter = Self.clamp(jitter, 0...1) }
    }
    /// The maximum wait for a server's Retry-After, 0 to a day. The default is ten minutes.
    public var maxRetryAfter: Duration {
        get { Duration(inSeconds: maxRetryAfterSeconds) }
        set { maxRetryAfterSeconds = newValue.inSeconds }
    }

    /// `baseDelay` in seconds.
    package private(set) var baseDelaySeconds: Double {
        didSet { baseDelaySeconds = Self.clamp(baseDelaySeconds, 0...3600) }
    }
    /// `maxDelay` in seconds.
    package private(set) var maxDelaySeconds: Double {
        didSet { maxDelaySeconds = Self.clamp(maxDelaySeconds, 0...86_400) }
    }
    /// `maxRetryAfter` in seconds.
    package private(set) var maxRetryAfterSeconds: Double {
        didSet { maxRetryAfterSeconds = Self.clamp(maxRetryAfterSeconds, 0...86_400) }
    }

    /// The stored form has seconds.
    private enum CodingKeys: String, CodingKey {
        case maxAttempts, jitter
        case baseDelaySeconds = "baseDelay"
        case maxDelaySeconds = "maxDelay"
        case maxRetryAfterSeconds = "maxRetryAfter"
    }

    /// Creates a policy. Values outside their ranges are moved to the nearer end.
    public init(
        maxAttempts: Int = 5, baseDelay: Duration = .seconds(1), maxDelay: Duration = .seconds(60),
        jitter: Double = 0.5, maxRetryAfter: Duration = .seconds(600)
    ) {
        self.maxAttempts = min(max(maxAttempts, 1), 1001)
        baseDelaySeconds = Self.clamp(baseDelay.inSeconds, 0...3600)
        maxDelaySeconds = Self.clamp(maxDelay.inSeconds, 0...86_400)
        self.jitter = Self.clamp(jitter, 0...1)
        maxRetryAfterSeconds = Self.clamp(maxRetryAfter.inSeconds, 0...86_400)
    }

    /// Decodes a policy; delays are in seconds. Missing keys take their defaults, and values are moved into their ranges.
    public init(from decoder: any Decoder) throws {
        let values = try decoder.container(keyedBy: CodingKeys.self)
        func delay(_ key: CodingKeys, default standard: Duration) throws -> Duration {
            try values.decodeIfPresent(Double.self, forKey: key).map { Duration(inSeconds: $0) } ?? standard
        }
        let standard = Self()
        self.init(
            maxAttempts: try values.decodeIfPresent(Int.self, forKey: .maxAttempts) ?? standard.maxAttempts,
            baseDelay: try delay(.baseDelaySeconds, default: standard.baseDelay),
            maxDelay: try delay(.maxDelaySeconds, default: standard.maxDelay),
            jitter: try values.decodeIfPresent(Double.self, forKey: .jitter) ?? standard.jitter,
            maxRetryAfter: try delay(.maxRetryAfterSeconds, default: standard.maxRetryAfter))
    }

    private static func clamp(_ value: Double, _ range: ClosedRange<Double>) -> Double {
        value.isNaN ? range.lowerBound : min(max(value, range.lowerBound), range.upperBound)
    }
}
