/// Waits for something that gives no event: looks again every 10 ms until the condition holds. This is the only place where
/// tests sleep.
///
/// It is for the file system, the output and the records of another process, and the moment at which a weak reference
/// becomes nil: nobody tells of these. For the library's own work there is always an event, a clock set by hand, or a
/// callback; await that.
///
/// - Parameter seconds: how long to look; generous, because it is used up only where something is broken.
/// - Returns: the condition's last value; nil when the time is over.
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

/// Never returns: throws once the Swift task is cancelled.
package func untilCancelled() async throws -> Never {
    let (nothing, source) = AsyncStream.makeStream(of: Void.self)
    for await _ in nothing {}
    source.finish()
    throw CancellationError()
}
