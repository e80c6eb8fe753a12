/// Finds the next free number for files that want one name (`item`, `item.1`, `item.2`, …) without trying all of them again
/// for each file.
///
/// The number to go on with is remembered for each folder and name, and looked at before it is used: numbers that became
/// free at the end are given again, and the plain name as soon as it is free. A name can still be taken between the look and
/// the use, so the use must not replace anything. A value type without locks.
package struct NameNumbers: Sendable {
    /// What bears a name.
    package enum Place: Sendable {
        case free
        case taken
        /// A file that this owner may take back.
        case leftover(of: String)
    }

    private struct Run {
        /// The number after the last one that was found free.
        var next = 1
        /// Numbers of files that were passed over and whose owner may come for them.
        var leftovers: [String: Int] = [:]
    }

    /// With more names than this the memory starts anew.
    static let limit = 4_096
    private var runs = ExactMap<Run>()

    package init() {}

    /// - Parameters:
    ///   - path: folder and name.
    ///   - owner: who asks; a leftover of that owner counts as free.
    ///   - least: lower numbers are not given: they turned out to be taken.
    ///   - look: what bears the name with that number; 0 is the plain name.
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
