import FKMiddleware
import Foundation

/// A barrel in the engine's memory: its members in order, and their sum.
///
/// `insert` and `remove` are O(1) on average, whatever the number of members. The sum is counted once, on first use,
/// and then updated by the difference for each change of a member.
package struct BarrelEntry {
    package let name: String
    package let created: Date
    package private(set) var options: BarrelOptions
    /// The sums when the barrel was last saved with a counted sum.
    private var sums: BarrelSums
    private var list: BarrelMembers
    /// The number of changes since the barrel was last saved.
    package private(set) var pending = 0
    /// True if options have changed since the last save. No task record contains them.
    private(set) var hasNewOptions = false

    private(set) var isCounted = false
    package private(set) var received: Int64 = 0
    package private(set) var expected: Int64 = 0
    /// The number of members of unknown length.
    package private(set) var unknownLengths = 0
    /// Those of them that can still run.
    private var openUnknownLengths = 0
    package private(set) var states: [DownloadState: Int] = [:]
    /// The highest fraction that was reported.
    private var shownFraction: Double?
    /// The bytes that arrived for members since the sum was counted, also for members that have ended since.
    private var fetched: Int64 = 0
    private var speed = SpeedMeter()

    package init(record: BarrelRecord) { self.init(record, BarrelMembers(record.members)) }

    private init(_ record: BarrelRecord, _ members: BarrelMembers) {
        name = record.name
        created = record.created
        options = record.options
        sums = record.sums
        list = members
    }

    /// Reads a barrel's file.
    ///
    /// - Throws: same as `BarrelFile.read`.
    package init(_ name: String, in workPath: WorkPath) throws {
        let (record, members) = try BarrelMembers.read(name, in: workPath)
        self.init(record, members)
    }

    package var count: Int { list.count }
    package func contains(_ id: TaskID) -> Bool { list.contains(id) }

    /// Takes the members and the settings of the barrel's newer file. The sum must be counted again.
    ///
    /// - Throws: same as `BarrelFile.read`.
    package mutating func readAgain(in workPath: WorkPath) throws {
        var newer = try BarrelEntry(name, in: workPath)
        newer.shownFraction = shownFraction
        newer.fetched = fetched
        newer.speed = speed
        self = newer
    }

    /// The number of places of members, in the order in which they joined; some may be empty.
    var placeCount: Int { list.placeCount }

    /// The member at a place; nil if the place is empty.
    package func id(at place: Int) -> TaskID? { list.id(at: place) }

    /// The ids of the members in the order in which they joined.
    package var ids: [TaskID] { list.ids }

    /// The members in the order in which they joined.
    ///
    /// - Throws: `.corruptInfo` or `.disk` if the URLs of a long barrel cannot be read.
    package func members() throws -> [BarrelMember] { try list.all() }

    /// Passes each member to `body`, in the order in which they joined.
    ///
    /// - Throws: same as `members`; the error of `body`.
    package func forEachMember(_ body: (TaskID, UnsafeBufferPointer<UInt8>) throws -> Void) throws {
        try list.forEach(body)
    }

    /// Writes the barrel's file.
    ///
    /// - Returns: the number of bytes written.
    /// - Throws: same as `BarrelFile.write`; it may be tried again then.
    package mutating func save(in workPath: WorkPath) throws -> Int {
        let record = BarrelRecord(name: name, created: created, options: options, sums: presentSums)
        let size = try list.write(record, in: workPath)
        sums = presentSums
        pending = 0
        hasNewOptions = false
        return size
    }

    /// Makes the members those that the records of tasks name, and saves them (`BarrelMembers.reconcile`).
    ///
    /// - Throws: same as `save`.
    mutating func reconcile(in workPath: WorkPath) throws {
        let record = BarrelRecord(name: name, created: created, options: options, sums: sums)
        try list.reconcile(with: record, in: workPath)
        _ = try save(in: workPath)
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

    /// Adds a member. Returns false if it is one already.
    package mutating func insert(_ member: BarrelMember) -> Bool {
        guard list.insert(member) else { return false }
        // The progress of a complete barrel begins at 0 again.
        if shownFraction == 1 { shownFraction = nil }
        pending += 1
        return true
    }

    /// Removes a member. Returns false if it is none.
    package mutating func remove(_ id: TaskID) -> Bool {
        guard list.remove(id) else { return false }
        pending += 1
        return true
    }

    // MARK: The sum

    /// Counts all members.
    package mutating func count(_ accounts: some Sequence<TaskEntry.Account>) {
        received = 0
        expected = 0
        unknownLengths = 0
        openUnknownLengths = 0
        states = [:]
        isCounted = true
        for account in accounts { replace(TaskEntry.Account(), by: account) }
    }

    /// Updates the sum for a change of one member.
    package mutating func replace(_ old: TaskEntry.Account, by new: TaskEntry.Account) {
        guard isCounted else { return }
        // The bytes that a task brings along when it joins did not arrive now.
        if old.state != nil, new.state != nil { fetched &+= max(0, new.received &- old.received) }
        // Servers report any length. If a sum overflows, it is wrong, which is harmless.
        received &+= new.received &- old.received
        expected &+= new.expected &- old.expected
        unknownLengths += (new.isLengthUnknown ? 1 : 0) - (old.isLengthUnknown ? 1 : 0)
        openUnknownLengths += (new.isOpenLengthUnknown ? 1 : 0) - (old.isOpenLengthUnknown ? 1 : 0)
        if old.state != new.state {
            if let state = old.state {
                states[state, default: 1] -= 1
                if states[state] == 0 { states[state] = nil }
            }
            if let state = new.state { states[state, default: 0] += 1 }
        }
    }

    // MARK: What is shown

    /// The present sums. The returned fraction counts as reported and does not decrease later. The speed is that of all
    /// bytes since earlier calls, so that small files count which begin and end between two of them.
    ///
    /// - Parameters:
    ///   - now: the time of the monotonic clock; nil, the default, measures no speed.
    ///   - first: the speed at the first call, which has nothing to compare with; the default is 0.
    package mutating func info(now: Int64? = nil, first: Double = 0) -> BarrelInfo {
        var info = BarrelInfo(name: name, states: states, total: count)
        let isKnown = unknownLengths == 0 && info.total > 0
        info.count = ByteCount(
            received: received, expected: expected > 0 || isKnown ? expected : nil, isLowerBound: !isKnown)
        info.unknownLengths = openUnknownLengths
        // A member that has failed may never get a length. The fraction is that of the others.
        var shown = info.count
        shown.isLowerBound = openUnknownLengths > 0 || info.total == 0
        shownFraction = ProgressFraction.next(after: shownFraction, of: shown, isComplete: info.isComplete)
        info.fraction = shownFraction
        if let now { speed.add(time: now, bytes: fetched) }
        info.bytesPerSecond = states[.action] == nil ? 0 : speed.isMeasured ? speed.bytesPerSecond : first
        return info
    }
}

/// The progress of several files as a number that never decreases.
package enum ProgressFraction {
    /// The fraction to report after `last`; nil if there was none and the total is unknown.
    ///
    /// - Parameter isComplete: true if all files are complete. Until then, one byte is held back.
    package static func next(after last: Double?, of count: ByteCount, isComplete: Bool) -> Double? {
        if isComplete { return 1 }
        // A barrel that is no longer complete begins at 0 again.
        let last = last == 1 ? nil : last
        guard let expected = count.expected, !count.isLowerBound else { return last }
        let whole = Double(max(1, expected))
        return max(last ?? 0, max(0, min(Double(count.received), whole - 1)) / whole)
    }
}
