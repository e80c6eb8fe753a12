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
    private(set) var states: [DownloadState: Int] = [:]

    init(record: BarrelRecord) {
        self.record = record
        memberIDs = Set(record.members.map(\.id))
    }

    /// In the order in which they joined.
    var members: [TaskID] { record.members.map(\.id) }

    /// Returns false when it was a member already.
    func insert(_ id: TaskID, url: String) -> Bool {
        guard memberIDs.insert(id).inserted else { return false }
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
        if old.state != new.state {
            if let state = old.state {
                states[state, default: 1] -= 1
                if states[state] == 0 { states[state] = nil }
            }
            if let state = new.state { states[state, default: 0] += 1 }
        }
    }
}
