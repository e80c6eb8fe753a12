import FKMiddleware

/// The sums over several tasks: for each state, how many tasks are in it, their bytes and their lengths. A change of one task updates
/// them by the difference. A value type that allocates nothing.
package struct TaskTotals: Sendable, Hashable {
    /// What one task adds.
    package struct Share: Sendable, Hashable {
        package var received: Int64
        /// The length in bytes; nil while it is unknown.
        package var expected: Int64?
        /// nil for a task that counts nowhere.
        package var state: DownloadState?

        /// Creates a share, by default that of a task that counts nowhere.
        package init(received: Int64 = 0, expected: Int64? = nil, state: DownloadState? = nil) {
            self.received = received
            self.expected = expected
            self.state = state
        }

        package init(_ info: DownloadInfo) {
            self.init(received: info.count.received, expected: info.count.expected, state: info.state)
        }

        package init(_ record: TaskRecord) {
            self.init(received: record.received, expected: record.expected, state: record.state)
        }

        /// The bytes that are known of the file.
        fileprivate var known: Int64 { max(expected ?? received, received) }
        /// A complete or removed task has no length that is still to be learned.
        fileprivate var isLengthUnknown: Bool { expected == nil && state != .complete && state != .unknown }
    }

    /// One number for each state. The servers report the lengths, so a sum may overflow. It is then wrong, which is harmless.
    private typealias Row = SIMD8<Int64>
    private var counts = Row()
    private var receivedBytes = Row()
    private var knownBytes = Row()
    private var unknowns = Row()

    package init() {}

    package mutating func add(_ share: Share) { change(share, 1) }
    package mutating func remove(_ share: Share) { change(share, -1) }

    package mutating func replace(_ old: Share, by new: Share) {
        remove(old)
        add(new)
    }

    private mutating func change(_ share: Share, _ sign: Int64) {
        guard let index = share.state?.index else { return }
        counts[index] &+= sign
        receivedBytes[index] &+= sign &* share.received
        knownBytes[index] &+= sign &* share.known
        if share.isLengthUnknown { unknowns[index] &+= sign }
    }

    // MARK: Sums

    package var count: Int { Int(counts.wrappedSum()) }
    package var received: Int64 { receivedBytes.wrappedSum() }
    /// The sum of the lengths. A task of unknown length counts with its received bytes.
    package var expected: Int64 { knownBytes.wrappedSum() }
    /// The number of tasks whose length is unknown. Complete ones have one.
    package var unknownLengths: Int { Int(unknowns.wrappedSum()) }
    /// True if there are tasks, and the length of each is known.
    package var isExpectedKnown: Bool { count > 0 && unknownLengths == 0 }
    /// The received bytes and the lengths. While nothing is known of any length, there is no sum of them.
    package var bytes: ByteCount {
        ByteCount(
            received: received, expected: expected > 0 || isExpectedKnown ? expected : nil,
            isLowerBound: !isExpectedKnown)
    }
    /// The number of tasks in each state that has any.
    package var states: [DownloadState: Int] {
        var states: [DownloadState: Int] = [:]
        for state in Self.all where count(state) > 0 { states[state] = count(state) }
        return states
    }

    package func count(_ state: DownloadState) -> Int { Int(counts[state.index]) }

    /// The sums over the tasks in some states.
    package func of(_ states: Set<DownloadState>) -> TaskTotals { self.where(states.contains) }

    /// The sums over the tasks in the states that meet a condition.
    package func `where`(_ condition: (DownloadState) -> Bool) -> TaskTotals {
        var totals = self
        for state in Self.all where !condition(state) {
            totals.counts[state.index] = 0
            totals.receivedBytes[state.index] = 0
            totals.knownBytes[state.index] = 0
            totals.unknowns[state.index] = 0
        }
        return totals
    }

    /// `allCases` makes an array at each call, and a run asks for its sums at each change.
    private static let all = DownloadState.allCases
}

extension DownloadState {
    /// The place in `allCases`.
    package var index: Int {
        switch self {
        case .idle: 0
        case .action: 1
        case .suspend: 2
        case .cancel: 3
        case .error: 4
        case .complete: 5
        case .unknown: 6
        }
    }

    /// True if the task does not run again unless it is queued again.
    package var isOver: Bool {
        switch self {
        case .complete, .error, .cancel, .unknown: true
        case .idle, .action, .suspend: false
        }
    }
}
