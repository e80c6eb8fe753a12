import FKMiddleware
import Foundation

/// The barrels an engine has opened, and the only writer of their files.
///
/// A change of a member is O(1) and writes no barrel file. What has changed is saved once, at the end of a request
/// (`saveDue`), or with the next tick (`saveAll`). So that a kill in between loses nothing, a mark beside the file says that
/// the records of the tasks know better (`BarrelFile.isMarked`).
///
/// ```text
/// mark -> records of the tasks -> barrel file -> mark removed
/// ```
struct BarrelBook {
    /// At most this many members: saved at the end of each request that has changed the barrel.
    static let smallCount = 100
    /// A larger barrel is saved at the end of a request once a quarter of its members have changed, else with the next tick.
    /// Thousands of requests for one member each then write the file a few dozen times, and not once each.
    static let share = 4

    private let workPath: WorkPath
    private var barrels = ExactMap<Barrel>()
    /// Barrels with a mark beside their file.
    private var marked: Set<ExactText> = []
    /// Barrels that requests in progress may change at any moment: their mark stays.
    private var users = ExactMap<Int>()

    /// How often a barrel file was written, and how many bytes that were.
    private(set) var saveCount = 0
    private(set) var savedBytes = 0

    init(_ workPath: WorkPath) { self.workPath = workPath }

    /// A barrel that is open; nil when it is not.
    subscript(name: String) -> Barrel? { barrels[name] }

    /// False also while the barrel is not open.
    func contains(_ id: TaskID, in name: String) -> Bool { barrels[name]?.contains(id) ?? false }

    // MARK: Opening

    mutating func open(_ barrel: Barrel) { barrels[barrel.name] = barrel }

    /// Deletes the barrel and its file.
    mutating func delete(_ name: String) throws {
        try BarrelFile.delete(name, in: workPath)
        barrels[name] = nil
        removeMark(ExactText(name))
    }

    // MARK: Changing

    /// Members may join or leave until `end`: the mark is there before the first record says so.
    mutating func begin(_ name: String) {
        users[name, default: 0] += 1
        mark(name)
    }

    mutating func end(_ name: String) {
        let count = users[name, default: 1] - 1
        users[name] = count > 0 ? count : nil
    }

    mutating func setOptions(_ options: BarrelOptions, of name: String) {
        mark(name)
        barrels[name]?.setOptions(options)
    }

    /// Returns false when it was a member already, or the barrel is not open.
    mutating func insert(_ member: BarrelMember, into name: String) -> Bool {
        guard barrels[name]?.contains(member.id) == false else { return false }
        mark(name)
        return barrels[name]?.insert(member) ?? false
    }

    /// Returns false when it was no member, or the barrel is not open.
    mutating func remove(_ id: TaskID, from name: String) -> Bool {
        guard barrels[name]?.contains(id) == true else { return false }
        mark(name)
        return barrels[name]?.remove(id) ?? false
    }

    mutating func count(_ name: String, _ accounts: [TaskEntry.Account]) { barrels[name]?.count(accounts) }

    /// The sums of a barrel that is open and counted, without speeds. Its fraction counts as shown.
    mutating func info(_ name: String) -> BarrelInfo {
        barrels[name]?.info() ?? BarrelInfo(name: name, states: [:], total: 0)
    }

    /// Follows the change of a member of these barrels.
    mutating func replace(_ old: TaskEntry.Account, by new: TaskEntry.Account, in names: some Sequence<String>) {
        for name in names { barrels[name]?.replace(old, by: new) }
    }

    private mutating func mark(_ name: String) {
        // A disk that refuses the mark refuses the barrel file too, and that is reported.
        if marked.insert(ExactText(name)).inserted { try? BarrelFile.mark(name, in: workPath) }
    }

    private mutating func removeMark(_ name: ExactText) {
        marked.remove(name)
        BarrelFile.removeMark(name.text, in: workPath)
    }

    // MARK: Saving

    /// Saves at the end of a request what is not better left for the tick. Returns what went wrong.
    mutating func saveDue() -> [String] {
        save { $0.hasNewOptions || $0.count <= Self.smallCount || $0.pending * Self.share >= $0.count }
    }

    /// Saves every barrel that has changed. Returns what went wrong.
    mutating func saveAll() -> [String] { save { _ in true } }

    private mutating func save(where isDue: (Barrel) -> Bool) -> [String] {
        var problems: [String] = []
        for name in marked {
            guard let barrel = barrels[name.text], barrel.pending > 0 else {
                if users[name.text] == nil { removeMark(name) }
                continue
            }
            guard isDue(barrel) else { continue }
            do {
                savedBytes += try BarrelFile.save(barrel.record, in: workPath)
                saveCount += 1
                barrels[name.text]?.saved()
                if users[name.text] == nil { removeMark(name) }
            } catch {
                problems.append("Barrel \(name.text) could not be saved: \(error)")
            }
        }
        return problems
    }
}
