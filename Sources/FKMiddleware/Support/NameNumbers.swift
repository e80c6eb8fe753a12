/// Finds the next free number for files with the same name (`item`, `item.1`, `item.2`, …) without trying all numbers
/// for each file.
///
/// It caches the next number for each folder and name and checks a number before it returns it. Numbers at the end
/// that became free are reused, and so is the plain name. A name can still be taken after the check, so its user must
/// not replace a file. A value type without locks.
package struct NameNumbers: Sendable {
    /// The state of a name on the disk.
    package enum Place: Sendable {
        case free
        case taken
        /// A file of this owner, who may reuse it.
        case leftover(of: String)
    }

    private struct Run {
        /// The number after the last free one found.
        var next = 1
        /// The numbers of skipped files by owner. An owner may still come back for its file.
        var leftovers: [String: Int] = [:]
    }

    /// The cache is emptied when it has more names than this.
    static let limit = 4_096
    private var runs = ExactText.Map<Run>()

    package init() {}

    /// True if the name of that path was taken before.
    package func isKnown(_ path: String) -> Bool { runs[path] != nil }

    /// Finds the number for one file.
    ///
    /// - Parameters:
    ///   - path: the folder and the name.
    ///   - owner: the owner of the new file; its own leftovers count as free.
    ///   - least: the lowest number to return, because the lower ones turned out to be taken.
    ///   - look: returns the state of the name with that number; 0 is the plain name.
    /// - Returns: the number to use; 0 for the plain name.
    package mutating func next(_ path: String, owner: String, least: Int = 0, look: (Int) -> Place) -> Int {
        func isFree(_ number: Int) -> Bool {
            switch look(number) {
            case .free: return true
            case .taken: return false
            case .leftover(let other):
                if other != owner { leftovers[other] = number }
                return other == owner
            }
        }
        var leftovers: [String: Int] = [:]
        if least == 0, isFree(0) { return 0 }
        if runs.count >= Self.limit { runs.removeAll() }
        var run = runs[path] ?? Run()
        runs[path] = nil
        defer {
            run.leftovers.merge(leftovers) { $1 }
            runs[path] = run
        }
        if let own = run.leftovers.removeValue(forKey: owner), own >= least, isFree(own) { return own }
        var number = max(run.next, least, 1)
        while number > max(least, 1), isFree(number - 1) { number -= 1 }
        while !isFree(number) { number += 1 }
        run.next = number + 1
        return number
    }
}
