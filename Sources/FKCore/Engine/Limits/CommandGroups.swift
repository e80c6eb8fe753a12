import FKMiddleware

/// The limits of one command for the tasks that it requests.
package struct OwnLimits: Codable, Sendable, Hashable {
    /// The command's name, equal in all of its requests.
    package var name: String
    /// Tasks at once, 1...256; nil uses the shared slots.
    package var maxAction: Int?
    /// Bytes a second over its tasks, above 0; nil for no limit.
    package var rateLimit: Int64?
    /// Connections for one file, unless the task sets its own; nil for the configuration's value.
    package var connections: ConnectionLimit?
    /// Connections to one host, 1...256; nil for the configuration's value.
    package var connectionsPerHost: Int?
    /// Requests to one host; nil for no limit.
    package var requestRate: RequestRate?
    /// A contact that is appended to the User-Agent; nil for that of the host's policy.
    package var contact: String?
    /// The number of shards that divide the limits of hosts among themselves, at least 1; nil for 1.
    package var shards: Int?

    /// Creates limits. The default is none.
    package init(
        name: String, maxAction: Int? = nil, rateLimit: Int64? = nil, connections: ConnectionLimit? = nil,
        connectionsPerHost: Int? = nil, requestRate: RequestRate? = nil, contact: String? = nil, shards: Int? = nil
    ) {
        self.name = name
        self.maxAction = maxAction
        self.rateLimit = rateLimit
        self.connections = connections
        self.connectionsPerHost = connectionsPerHost
        self.requestRate = requestRate
        self.contact = contact
        self.shards = shards
    }

    /// A description of the first value outside its range; nil if all are valid.
    package var fault: String? {
        if let shards, !(1...Shard.maxCount).contains(shards) {
            return "a command's shards are from 1 to \(Shard.maxCount)"
        }
        if let maxAction, !(1...256).contains(maxAction) { return "a command's tasks at once are from 1 to 256" }
        if let rateLimit, rateLimit < 1 { return "a command's rate limit is at least 1" }
        if case .fixed(let count) = connections, !ConnectionLimit.range.contains(count) {
            return "a command's connections are from 1 to 256"
        }
        return HostPolicy("a", connections: connectionsPerHost, requestRate: requestRate, contact: contact).fault
    }
}

/// The groups of tasks that share the limits of one command, and how many of each run. A group with its own number of
/// tasks at once has its own slots. All other tasks use the shared slots.
///
/// A group exists while one of its tasks can still run or holds a slot. Its number is not reused.
package struct CommandGroups: Sendable {
    /// The group of tasks without a command's limits.
    package static let none: Int32 = 0

    private struct Group {
        let number: Int32
        var limits: OwnLimits
        var limiter: RateLimiter?
        /// Barrels whose own, later limit replaces the command's.
        var lifted: Set<ExactText> = []
        /// The number of tasks that can still run.
        var open = 0
        /// The number of tasks that hold a slot.
        var running = 0
    }

    /// In the order of creation. There are few, and each task asks for its own several times.
    private var groups: [Group] = []
    private var numbers: [String: Int32] = [:]
    private var last = none
    /// The number of tasks that hold a shared slot.
    private var sharing = 0

    package init() {}

    /// The number of the group with the name of these limits. A new group is created if there is none.
    ///
    /// - Parameter now: nanoseconds of the monotonic clock.
    package mutating func number(for limits: OwnLimits, now: Int64) -> Int32 {
        if let number = numbers[limits.name] { return number }
        last += 1
        groups.append(
            Group(number: last, limits: limits, limiter: limits.rateLimit.map { RateLimiter(rate: $0, now: now) }))
        numbers[limits.name] = last
        return last
    }

    /// Changes the number of a group's tasks that can still run.
    package mutating func count(_ group: Int32, open difference: Int) {
        if let index = index(group) { groups[index].open += difference }
        removeIfIdle(group)
    }

    /// True while another task of the group may start.
    ///
    /// - Parameter shared: the number of shared slots.
    package func hasSlot(_ group: Int32, shared: Int) -> Bool {
        guard let index = index(group), let maxAction = groups[index].limits.maxAction else { return sharing < shared }
        return groups[index].running < maxAction
    }

    /// The slots of all groups with waiting tasks, if all of those are taken; nil while one is free.
    ///
    /// - Parameters:
    ///   - shared: the number of shared slots.
    ///   - open: the number of tasks that can still run, with or without a group.
    package func taken(shared: Int, open: Int) -> Int? {
        var sum = 0
        var sharingOpen = open
        for group in groups {
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

    /// Acquires a slot for a task of the group.
    package mutating func began(_ group: Int32) {
        if let index = index(group) { groups[index].running += 1 }
        if maxAction(of: group) == nil { sharing += 1 }
    }

    /// Releases the slot that a task acquired in this group.
    package mutating func ended(_ group: Int32) {
        if let index = index(group) { groups[index].running -= 1 }
        if maxAction(of: group) == nil { sharing -= 1 }
        removeIfIdle(group)
    }

    /// The rate limiter for a task of this group and these barrels; nil for none.
    package func limiter(of group: Int32, barrels: [String] = []) -> RateLimiter? {
        guard let group = index(group).map({ groups[$0] }), let limiter = group.limiter else { return nil }
        return barrels.contains { group.lifted.contains(ExactText($0)) } ? nil : limiter
    }

    /// The connections for one file of the group; nil if the command sets none.
    package func connections(of group: Int32) -> ConnectionLimit? {
        index(group).flatMap { groups[$0].limits.connections }
    }
    /// The group's own number of tasks at once; nil if it uses the shared slots.
    package func maxAction(of group: Int32) -> Int? { index(group).flatMap { groups[$0].limits.maxAction } }

    /// The group's limits for requests to a host.
    func asker(_ group: Int32) -> HostAsker {
        index(group).map { HostAsker(groups[$0].limits, group: group) } ?? .anyone
    }

    /// Ends the rate limits of all groups.
    ///
    /// - Returns: the number of limits that ended.
    @discardableResult
    package mutating func liftRates() -> Int {
        let limited = groups.indices.filter { groups[$0].limiter != nil }
        for index in limited {
            groups[index].limiter = nil
            groups[index].limits.rateLimit = nil
        }
        return limited.count
    }

    /// Ends the rate limits of all groups for the members of a barrel.
    package mutating func liftRates(ofBarrel name: String) {
        for index in groups.indices { groups[index].lifted.insert(ExactText(name)) }
    }

    /// The groups with tasks that can still run and the number of those tasks, in the order of creation.
    package var all: [(number: Int32, limits: OwnLimits, open: Int)] {
        groups.map { ($0.number, $0.limits, $0.open) }.filter { $0.2 > 0 }
    }

    private mutating func removeIfIdle(_ number: Int32) {
        guard let index = index(number), groups[index].open <= 0, groups[index].running <= 0 else { return }
        numbers[groups.remove(at: index).limits.name] = nil
    }

    private func index(_ number: Int32) -> Int? {
        number == Self.none ? nil : groups.firstIndex { $0.number == number }
    }
}
