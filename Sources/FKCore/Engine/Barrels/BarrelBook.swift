import FKMiddleware
import Foundation

/// The barrels that an engine has opened. It is the only writer of their files.
///
/// A change of a member is O(1) and writes no barrel file. Changed barrels are saved once, at the end of a request
/// (`saveDue`) or with the next tick (`saveAll`). A mark beside the file says that the tasks' records are newer
/// (`BarrelFile.isMarked`), so a crash before the save loses nothing.
///
/// ```text
/// mark -> records of the tasks -> barrel file -> mark removed
/// ```
struct BarrelBook {
    /// A barrel of at most this many members is saved at the end of each request that has changed it.
    static let smallCount = 100
    /// A larger barrel is saved at the end of a request if a quarter of its members have changed, else with the next
    /// tick. Thousands of requests for one member each then write the file a few dozen times.
    static let share = 4

    private let workPath: WorkPath
    /// No `ExactText.Map`: its code is in another module, which copies the entry twice at each change (20,000 instructions a file).
    private var barrels: [ExactText: BarrelEntry] = [:]
    /// The place of the barrel whose sums changed last. Its members change one after the other, as a rule.
    private var last: (name: String, place: Dictionary<ExactText, BarrelEntry>.Index)?
    /// The barrels with a mark beside their file.
    private var marked: Set<ExactText> = []
    /// The number of requests in progress for each barrel. Their marks stay.
    private var users = ExactText.Map<Int>()

    /// The number of barrel files written, and their bytes.
    private(set) var saveCount = 0
    private(set) var savedBytes = 0

    init(_ workPath: WorkPath) { self.workPath = workPath }

    /// The open barrel with this name; nil if there is none.
    subscript(name: String) -> BarrelEntry? { barrels[ExactText(name)] }

    /// True if the task is a member. False if the barrel is not open.
    func contains(_ id: TaskID, in name: String) -> Bool { barrels[ExactText(name)]?.contains(id) ?? false }

    // MARK: Opening

    mutating func open(_ barrel: BarrelEntry) {
        barrels[ExactText(barrel.name)] = barrel
        last = nil
    }

    /// Deletes the barrel and its file.
    mutating func delete(_ name: String) throws {
        try BarrelFile.delete(name, in: workPath)
        barrels[ExactText(name)] = nil
        last = nil
        removeMark(ExactText(name))
    }

    // MARK: Changing

    /// Begins a request that may change members; `end` ends it. The mark is written before the first record changes.
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
        barrels[ExactText(name)]?.setOptions(options)
    }

    /// Adds a member. Returns false if it is one already, or the barrel is not open.
    mutating func insert(_ member: BarrelMember, into name: String) -> Bool {
        guard barrels[ExactText(name)]?.contains(member.id) == false else { return false }
        mark(name)
        return barrels[ExactText(name)]?.insert(member) ?? false
    }

    /// Removes a member. Returns false if it is none, or the barrel is not open.
    mutating func remove(_ id: TaskID, from name: String) -> Bool {
        guard barrels[ExactText(name)]?.contains(id) == true else { return false }
        mark(name)
        return barrels[ExactText(name)]?.remove(id) ?? false
    }

    mutating func count(_ name: String, _ shares: [TaskTotals.Share]) { barrels[ExactText(name)]?.count(shares) }

    /// The sums of an open and counted barrel (`BarrelEntry.info`).
    mutating func info(_ name: String, now: Int64, first: Double) -> BarrelInfo {
        barrels[ExactText(name)]?.info(now: now, first: first) ?? BarrelInfo(name: name, states: [:], total: 0)
    }

    /// Updates the sums of these barrels for a change of a member.
    mutating func replace(_ old: TaskTotals.Share, by new: TaskTotals.Share, in names: some Sequence<String>) {
        for name in names { if let place = place(of: name) { barrels.values[place].replace(old, by: new) } }
    }

    private mutating func place(of name: String) -> Dictionary<ExactText, BarrelEntry>.Index? {
        if let last, last.name.isExactly(name) { return last.place }
        guard let place = barrels.index(forKey: ExactText(name)) else { return nil }
        last = (name, place)
        return place
    }

    private mutating func mark(_ name: String) {
        // An error here is ignored: the barrel file then fails too, and that is reported.
        if marked.insert(ExactText(name)).inserted { try? BarrelFile.mark(name, in: workPath) }
    }

    private mutating func removeMark(_ name: ExactText) {
        marked.remove(name)
        BarrelFile.removeMark(name.text, in: workPath)
    }

    // MARK: Saving

    /// Saves the changed barrels that are due at the end of a request. Returns the errors, and saves these barrels with the next tick.
    mutating func saveDue() -> [(name: String, error: DownloadError)] {
        save { $0.hasNewOptions || $0.count <= Self.smallCount || $0.pending * Self.share >= $0.count }
    }

    /// Saves all changed barrels. Returns the errors.
    mutating func saveAll() -> [(name: String, error: DownloadError)] { save { _ in true } }

    private mutating func save(where isDue: (BarrelEntry) -> Bool) -> [(name: String, error: DownloadError)] {
        var failures: [(name: String, error: DownloadError)] = []
        for name in marked {
            guard barrels[name].map({ $0.pending > 0 }) ?? false else {
                if users[name.text] == nil { removeMark(name) }
                continue
            }
            // No copy of the barrel lives while it changes.
            guard barrels[name].map(isDue) ?? false else { continue }
            do {
                savedBytes += try barrels[name]?.save(in: workPath) ?? 0
                saveCount += 1
                if users[name.text] == nil { removeMark(name) }
            } catch {
                var error = DownloadError(wrapping: error, code: .disk, message: "its file could not be written.")
                error.message = "The barrel \(name.text) could not be saved: \(error.message)"
                failures.append((name.text, error))
            }
        }
        return failures
    }
}
