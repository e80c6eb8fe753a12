import FKMiddleware
import Foundation

/// A barrel in the engine's memory: its members in order, and their sum.
///
/// `insert` and `remove` are O(1) on average, whatever the number of members.
package struct BarrelEntry {
    package let name: String
    package let created: Date
    package private(set) var options: BarrelOptions
    private var list: BarrelMembers
    /// The number of changes since the barrel was last saved.
    package private(set) var pending = 0
    /// True if options have changed since the last save. No task record contains them.
    private(set) var hasNewOptions = false

    package private(set) var sum = TaskSum()

    package init(record: BarrelRecord) { self.init(record, BarrelMembers(record.members)) }

    private init(_ record: BarrelRecord, _ members: BarrelMembers) {
        name = record.name
        created = record.created
        options = record.options
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
    /// True if members were not appended completely, so that the tasks' records say more than the file.
    var isTorn: Bool { list.isTorn }

    /// Reads the members and the settings of the barrel's newer file. The sum must be counted again.
    ///
    /// - Throws: same as `BarrelFile.read`.
    package mutating func readAgain(in workPath: WorkPath) throws {
        var newer = try BarrelEntry(name, in: workPath)
        newer.sum = sum.uncounted
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

    /// Writes the barrel's file, or appends the new members to it.
    ///
    /// - Returns: the number of bytes written.
    /// - Throws: same as `BarrelFile.write`; it may be tried again then.
    package mutating func save(in workPath: WorkPath) throws -> Int {
        if !hasNewOptions, let size = try list.append(to: name, in: workPath) {
            pending = 0
            return size
        }
        let record = BarrelRecord(name: name, created: created, options: options)
        let size = try list.write(record, in: workPath)
        pending = 0
        hasNewOptions = false
        return size
    }

    /// Makes the members those that the records of tasks name, and saves them (`BarrelMembers.reconcile`).
    ///
    /// - Throws: same as `save`.
    mutating func reconcile(in workPath: WorkPath) throws {
        let record = BarrelRecord(name: name, created: created, options: options)
        try list.reconcile(with: record, in: workPath)
        _ = try save(in: workPath)
    }

    mutating func setOptions(_ options: BarrelOptions) {
        self.options = options
        hasNewOptions = true
        pending += 1
    }

    /// Adds a member. Returns false if it is one already.
    package mutating func insert(_ member: BarrelMember) -> Bool {
        guard list.insert(member) else { return false }
        sum.joined()
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
    package mutating func count(_ shares: some Sequence<TaskTotals.Share>) { sum.count(shares) }

    /// Updates the sum for a change of one member.
    package mutating func replace(_ old: TaskTotals.Share, by new: TaskTotals.Share) { sum.replace(old, by: new) }

    /// The present sums, as `TaskSum.info`.
    package mutating func info(now: Int64? = nil, first: Double = 0) -> BarrelInfo {
        sum.info(name, total: count, now: now, first: first)
    }
}
