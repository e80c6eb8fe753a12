/// Decides when freed memory is given back to the system. The C library keeps it, because small blocks that are in use lie behind it.
struct FreedMemory: Sendable {
    /// The ticks without a running task, and those between two times.
    static let wait = 5
    /// The bytes of requests and answers that count while nothing runs. Their values take about ten times as much.
    static let few = 1 << 20
    /// Those that count while tasks run, too.
    static let many = 16 << 20

    private var idleTicks = 0
    private var ticks = 0
    private var bytes = 0
    private var hasRun = true

    /// Bytes of a request and its answer, which are freed now.
    mutating func record(bytes count: Int) { bytes += count }

    /// To be called with each tick.
    ///
    /// - Parameter isIdle: true if no task runs.
    /// - Returns: true if memory is to be given back now.
    mutating func tick(isIdle: Bool) -> Bool {
        ticks += 1
        idleTicks = isIdle ? idleTicks + 1 : 0
        if !isIdle { hasRun = true }
        let isDue = idleTicks >= Self.wait && (hasRun || bytes >= Self.few) || bytes >= Self.many
        guard isDue, ticks >= Self.wait else { return false }
        (ticks, bytes, hasRun) = (0, 0, false)
        return true
    }
}
