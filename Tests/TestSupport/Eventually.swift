/// Waits for what nobody tells: looks again every 10 ms until the condition holds.
///
/// For things that only the file system or another process shows. Where there is an event, await that.
///
/// - Parameter seconds: how long to look; generous, because it is used up only where something is broken.
/// - Returns: what the condition gave at last; nil when the time is over.
package func eventually<Value>(
    within seconds: Double = 20, _ condition: () async throws -> Value?
) async throws -> Value? {
    let deadline = ContinuousClock.now + .seconds(seconds)
    while true {
        if let value = try await condition() { return value }
        guard ContinuousClock.now < deadline else { return nil }
        try await Task.sleep(for: .milliseconds(10))
    }
}
