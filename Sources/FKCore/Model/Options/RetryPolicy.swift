import FKMiddleware

/// The number of attempts for a failed task and the delays between them. `Downloader.init` refuses a value outside its
/// range with `.invalidArgument`.
public struct RetryPolicy: Codable, Sendable, Hashable {
    /// The maximum number of attempts, including the first, 1...1001, counted since the last progress: an attempt that
    /// brings 1 MiB, or 1 % of the file, begins the count anew. The default is 5. A plan with mirrors gets at least one attempt for
    /// each entry.
    public var maxAttempts: Int
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
    public var jitter: Double
    /// The maximum wait for a server's Retry-After, 0 to a day. The default is ten minutes.
    public var maxRetryAfter: Duration {
        get { Duration(inSeconds: maxRetryAfterSeconds) }
        set { maxRetryAfterSeconds = newValue.inSeconds }
    }

    package private(set) var baseDelaySeconds: Double
    package private(set) var maxDelaySeconds: Double
    package private(set) var maxRetryAfterSeconds: Double

    /// The stored form has seconds.
    private enum CodingKeys: String, CodingKey {
        case maxAttempts, jitter
        case baseDelaySeconds = "baseDelay"
        case maxDelaySeconds = "maxDelay"
        case maxRetryAfterSeconds = "maxRetryAfter"
    }

    /// Creates a policy. It does not check the values.
    public init(
        maxAttempts: Int = 5, baseDelay: Duration = .seconds(1), maxDelay: Duration = .seconds(60),
        jitter: Double = 0.5, maxRetryAfter: Duration = .seconds(600)
    ) {
        self.maxAttempts = maxAttempts
        baseDelaySeconds = baseDelay.inSeconds
        maxDelaySeconds = maxDelay.inSeconds
        self.jitter = jitter
        maxRetryAfterSeconds = maxRetryAfter.inSeconds
    }

    /// Decodes a policy; delays are in seconds. Missing keys take their defaults. It does not check the values.
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
}
