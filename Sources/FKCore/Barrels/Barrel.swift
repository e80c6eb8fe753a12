import FKMiddleware
import Foundation

/// A barrel in the engine's memory: its members in order, and their sum.
///
/// `insert` and `remove` are O(1) on average, whatever the number of members. The sum is counted once, when somebody asks,
/// and then follows each change of a member by the difference.
struct Barrel {
    let name: String
    let created: Date
    private(set) var options: BarrelOptions
    /// As they were when the barrel was last saved with a counted sum.
    private var sums: BarrelSums
    /// A removed member leaves a hole; the holes go once they are half of all places.
    private var places: [BarrelMember?]
    private var placeOfMember: [TaskID: Int32]
    /// Changes since the barrel was last saved.
    private(set) var pending = 0
    /// Options have changed since: they stand in no record.
    private(set) var hasNewOptions = false

    private(set) var isCounted = false
    private(set) var received: Int64 = 0
    private(set) var expected: Int64 = 0
    /// Members whose length is unknown.
    private(set) var unknownLengths = 0
    private(set) var states: [DownloadState: Int] = [:]
    /// The highest fraction that was shown.
    private var shownFraction: Double?

    init(record: BarrelRecord) {
        name = record.name
        created = record.created
        options = record.options
        sums = record.sums
        places = record.members
        placeOfMember = [:]
        placeOfMember.reserveCapacity(places.count)
        for (place, member) in record.members.enumerated() { placeOfMember[member.id] = Int32(place) }
    }

    var count: Int { placeOfMember.count }
    func contains(_ id: TaskID) -> Bool { placeOfMember[id] != nil }

    /// In the order in which they joined.
    var members: [BarrelMember] { places.compactMap(\.self) }

    var record: BarrelRecord {
        BarrelRecord(name: name, created: created, options: options, members: members, sums: presentSums)
    }

    private var presentSums: BarrelSums {
        guard isCounted else { return sums }
        return BarrelSums(
            complete: states[.complete] ?? 0, error: states[.error] ?? 0, received: received, expected: expected)
    }

    mutating func setOptions(_ options: BarrelOptions) {
        self.options = options
        hasNewOptions = true
        pending += 1
    }

    /// Returns false when it was a member already.
    mutating func insert(_ member: BarrelMember) -> Bool {
        guard placeOfMember[member.id] == nil else { return false }
        // What was complete begins anew.
        if shownFraction == 1 { shownFraction = nil }
        placeOfMember[member.id] = Int32(places.count)
        places.append(member)
        pending += 1
        return true
    }

    /// Returns false when it was no member.
    mutating func remove(_ id: TaskID) -> Bool {
        guard let place = placeOfMember.removeValue(forKey: id) else { return false }
        places[Int(place)] = nil
        pending += 1
        if places.count > 2 * placeOfMember.count { closeHoles() }
        return true
    }

    private mutating func closeHoles() {
        places = members
        for (place, member) in places.enumerated() { if let member { placeOfMember[member.id] = Int32(place) } }
    }

    /// The present state is on disk.
    mutating func saved() {
        sums = presentSums
        pending = 0
        hasNewOptions = false
    }

    // MARK: The sum

    /// Counts all members from nothing.
    mutating func count(_ accounts: some Sequence<TaskEntry.Account>) {
        received = 0
        expected = 0
        unknownLengths = 0
        states = [:]
        isCounted = true
        for account in accounts { replace(TaskEntry.Account(), by: account) }
    }

    /// Follows the change of one member.
    mutating func replace(_ old: TaskEntry.Account, by new: TaskEntry.Account) {
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
    mutating func info() -> BarrelInfo {
        var info = BarrelInfo(name: name, states: states, total: count)
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
