import FKMiddleware
import Foundation

/// A barrel in the engine's memory. Confined to the engine.
///
/// Its sum is counted once, when somebody asks, and then follows each change of a member by the difference.
final class Barrel {
    var record: BarrelRecord
    private(set) var memberIDs: Set<TaskID>
    var isDirty = false
    private(set) var isCounted = false
    private(set) var received: Int64 = 0
    private(set) var expected: Int64 = 0
    /// Members whose length is unknown.
    private(set) var unknownLengths = 0
    private(set) var states: [DownloadState: Int] = [:]
    /// The highest fraction that was shown.
    private var shownFraction: Double?

    init(record: BarrelRecord) {
        self.record = record
        memberIDs = Set(record.members.map(\.id))
    }

    /// In the order in which they joined.
    var members: [TaskID] { record.members.map(\.id) }

    /// Returns false when it was a member already.
    func insert(_ id: TaskID, url: String) -> Bool {
        guard memberIDs.insert(id).inserted else { return false }
        // What was complete begins anew.
        if shownFraction == 1 { shownFraction = nil }
        record.members.append(.init(id: id, url: url))
        isDirty = true
        return true
    }

    /// Returns false when it was no member.
    func remove(_ id: TaskID) -> Bool {
        guard memberIDs.remove(id) != nil else { return false }
        record.members.removeAll { $0.id == id }
        isDirty = true
        return true
    }

    /// Counts all members from nothing.
    func count(_ accounts: some Sequence<TaskEntry.Account>) {
        received = 0
        expected = 0
        unknownLengths = 0
        states = [:]
        isCounted = true
        for account in accounts { replace(TaskEntry.Account(), by: account) }
    }

    /// Follows the change of one member.
    func replace(_ old: TaskEntry.Account, by new: TaskEntry.Account) {
        guard isCounted else { return }
        // Lengths are what servers say: two of them may be more than a sum can hold, and then it is wrong and harmless.
        received &+= new.received &- old.received
        expected &+= new.expected &- old.expected
        unknownLengths += (new.isLengthUnknown ? 1 : 0) - (old.isLengthUnknown ? 1 : 0)
        if old.state != new.state {
            if let state = old.state {
                states[state, default: 1] -= 1
                if states[state] == 0 { states[state] = nil }
            }
            if let state = new.state { states[state, default: 0] += 1 }
        }
    }

    // MARK: What is shown

    /// The sums now, without speeds. The fraction in it has been shown and does not fall any more.
    func info() -> BarrelInfo {
        var info = BarrelInfo(name: record.name, states: states, total: memberIDs.count)
        let isKnown = unknownLengths == 0 && info.total > 0
        info.count = ByteCount(
            received: received, expected: expected > 0 || isKnown ? expected : nil, isLowerBound: !isKnown)
        shownFraction = ProgressFraction.next(
            after: shownFraction, of: info.count, isComplete: info.isComplete)
        info.fraction = shownFraction
        return info
    }
}

/// How much of several files is done, as a number that never falls.
package enum ProgressFraction {
    /// The fraction to show after `last`; nil while there was none and the whole is not known.
    ///
    /// - Parameter isComplete: all files are; before that, one byte is held back.
    package static func next(after last: Double?, of count: ByteCount, isComplete: Bool) -> Double? {
        if isComplete { return 1 }
        // What was complete and is not any more begins anew.
        let last = last == 1 ? nil : last
        guard let expected = count.expected, !count.isLowerBound else { return last }
        let whole = Double(max(1, expected))
        return max(last ?? 0, max(0, min(Double(count.received), whole - 1)) / whole)
    }
}
