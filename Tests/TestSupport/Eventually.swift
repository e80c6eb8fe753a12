import FKTesting

/// Polls a condition every 10 ms until it holds. This is the only place where tests sleep.
///
/// Use it for what gives no event: files, output and records of another process, a weak reference that becomes nil, and
/// Foundation's `Progress`, which cannot be observed on Linux. For the library's own work await an event or a callback, or
/// move a manual clock.
///
/// - Parameter seconds: how long to look; generous, because it is used up only where something is broken.
/// - Returns: the condition's last value; nil when the time is over.
package func eventually<Value>(
    within seconds: Double = 120, _ condition: () async throws -> Value?
) async throws -> Value? {
    let deadline = ContinuousClock.now + .seconds(seconds)
    while true {
        if let value = try await condition() { return value }
        guard ContinuousClock.now < deadline else { return nil }
        try await Task.sleep(for: .milliseconds(10))
    }
}

/// Never returns: throws once the Swift task is cancelled.
package func untilCancelled() async throws -> Never {
    let (nothing, source) = AsyncStream.makeStream(of: Void.self)
    for await _ in nothing {}
    source.finish()
    throw CancellationError()
}

extension Observed where Value == Int {
    /// Counts one more; 1 is the first.
    package func next() -> Int {
        update { count in
            count += 1
            return count
        }
    }
}
