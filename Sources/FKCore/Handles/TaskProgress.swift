import FKMiddleware

/// The progress of a task at one moment.
public struct TaskProgress: Sendable, Hashable {
    /// The state of the task.
    public var state: DownloadState
    /// The bytes received, those of earlier attempts included.
    public var received: Int64
    /// The length of the file in bytes; nil until a server has reported it.
    public var expected: Int64?
    /// The speed, smoothed over about five seconds; 0 while the task does not run.
    public var bytesPerSecond: Double
    /// The time until the file is complete at the present speed; nil while the length is unknown and while no bytes
    /// arrive.
    public var estimatedTimeRemaining: Duration?

    /// `received / expected`, in 0...1; nil while the length is unknown. An empty file counts as 1.
    public var fraction: Double? { ByteCount(received: received, expected: expected).fraction }

    /// Creates a progress for tests. Other values are 0 or nil.
    public init(state: DownloadState, received: Int64 = 0, expected: Int64? = nil) {
        self.state = state
        self.received = received
        self.expected = expected
        bytesPerSecond = 0
    }

    /// Takes the progress out of a task's info.
    public init(_ info: DownloadInfo) {
        state = info.state
        received = info.count.received
        expected = info.count.expected
        bytesPerSecond = info.bytesPerSecond
        estimatedTimeRemaining = info.estimatedTimeRemaining
    }
}
