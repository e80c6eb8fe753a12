import FKMiddleware

/// The limits that one command brings for the tasks it asks for, and for no others.
package struct OwnLimits: Codable, Sendable, Hashable {
    /// The same for every request of one command.
    package var name: String
    /// Tasks at once, 1...256; nil shares the slots of everybody else.
    package var maxAction: Int?
    /// Bytes a second over its tasks, above 0; nil is no limit.
    package var rateLimit: Int64?
    /// Connections one file may use, unless the task says so itself.
    package var connections: ConnectionLimit?

    package init(
        name: String, maxAction: Int? = nil, rateLimit: Int64? = nil, connections: ConnectionLimit? = nil
    ) {
        self.name = name
        self.maxAction = maxAction
        self.rateLimit = rateLimit
        self.connections = connections
    }

    var fault: String? {
        if let maxAction, !(1...256).contains(maxAction) { return "a command's tasks at once are from 1 to 256" }
        if let rateLimit, rateLimit < 1 { return "a command's rate limit is at least 1" }
        if case .fixed(let count) = connections, !ConnectionLimit.range.contains(count) {
            return "a command's connections are from 1 to 256"
        }
        return nil
    }
}

/// Which tasks share the limits of one command, and how many of them run. A group with a number of tasks at once has slots
/// of its own; all other tasks share the downloader's.
///
/// A group exists as long as one of its tasks can still run or holds a slot. Its number is never used again.
package struct CommandGroups: Sendable {
    /// Of tasks that no command with limits asked for.
    package static let none: Int32 = 0

    private struct Group {
        var limits: OwnLimits
        var limiter: RateLimiter?
        /// Barrels that got a limit of their own since, which takes the place of the command's.
        var lifted: Set<ExactText> = []
        /// Tasks that can still run.
        var open = 0
        /// Tasks that hold a slot.
        var running = 0
    }

    private var groups: [Int32: Group] = [:]
    private var numbers: [String: Int32] = [:]
    private var last = none
    /// Tasks that hold one of the shared slots.
    private var sharing = 0

    package init() {}

    /// The number of the group with these limits, made when there is none of that name.
    package mutating func number(for limits: OwnLimits, now: Int64) -> Int32 {
        if let number = numbers[limits.name] { return number }
        last += 1
        groups[last] = Group(limits: limits, limiter: limits.rateLimit.map { RateLimiter(rate: $0, now: now) })
        numbers[limits.name] = last
        return last
    }

    /// The number of tasks of a group that can still run has changed.
    package mutating func count(_ group: Int32, open difference: Int) {
        groups[group]?.open += difference
        removeIfIdle(group)
    }

    /// True while the group may have another task started.
    package func hasSlot(_ group: Int32, shared: Int) -> Bool {
        guard let own = groups[group], let maxAction = own.limits.maxAction else { return sharing < shared }
        return own.running < maxAction
    }

    /// All slots of those groups in which tasks wait, where every one is taken; nil while one is free.
    ///
    /// - Parameter open: tasks that can still run, of all groups and of none.
    package func taken(shared: Int, open: Int) -> Int? {
        var sum = 0
        var sharingOpen = open
        for group in groups.values {
            guard let maxAction = group.limits.maxAction else { continue }
            sharingOpen -= group.open
            guard group.open > group.running else { continue }
            if group.running < maxAction { return nil }
            sum += maxAction
        }
        if sharingOpen > sharing {
            if sharing < shared { return nil }
            sum += shared
        }
        return sum > 0 ? sum : nil
    }

    /// A task of the group takes a slot.
    package mutating func began(_ group: Int32) {
        groups[group]?.running += 1
        if maxAction(of: group) == nil { sharing += 1 }
    }

    /// A task gives the slot back that it took as one of this group.
    package mutating func ended(_ group: Int32) {
        groups[group]?.running -= 1
        if maxAction(of: group) == nil { sharing -= 1 }
        removeIfIdle(group)
    }

    /// The rate limit for a task of that group and these barrels.
    package func limiter(of group: Int32, barrels: [String] = []) -> RateLimiter? {
        guard let group = groups[group], let limiter = group.limiter else { return nil }
        return barrels.contains { group.lifted.contains(ExactText($0)) } ? nil : limiter
    }

    package func connections(of group: Int32) -> ConnectionLimit? { groups[group]?.limits.connections }
    package func maxAction(of group: Int32) -> Int? { groups[group]?.limits.maxAction }

    /// Ends the rate limits of all groups.
    ///
    /// - Returns: how many there were.
    @discardableResult
    package mutating func liftRates() -> Int {
        let limited = groups.filter { $0.value.limiter != nil }.keys
        for number in limited {
            groups[number]?.limiter = nil
            groups[number]?.limits.rateLimit = nil
        }
        return limited.count
    }

    /// Ends the rate limits of all groups for the members of a barrel.
    package mutating func liftRates(ofBarrel name: String) {
        for number in groups.keys { groups[number]?.lifted.insert(ExactText(name)) }
    }

    /// The groups with tasks that can still run and their number, in the order in which they were made.
    package var all: [(limits: OwnLimits, open: Int)] {
        groups.sorted { $0.key < $1.key }.map { ($0.value.limits, $0.value.open) }.filter { $0.1 > 0 }
    }

    private mutating func removeIfIdle(_ number: Int32) {
        guard let group = groups[number], group.open <= 0, group.running <= 0 else { return }
        numbers[group.limits.name] = nil
        groups[number] = nil
    }
}
