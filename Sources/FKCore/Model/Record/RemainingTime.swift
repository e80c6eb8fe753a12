/// Estimates when the rest of a file or a barrel has arrived.
package enum RemainingTime {
    /// The time for the rest at this speed, at most a hundred years; nil if the length is unknown or no bytes arrive.
    package static func estimate(received: Int64, expected: Int64?, bytesPerSecond: Double) -> Duration? {
        guard let expected, bytesPerSecond > 0 else { return nil }
        let seconds = Double(max(0, expected - received)) / bytesPerSecond
        return .milliseconds(Int64(min(seconds, 3.2e9) * 1000))
    }
}
