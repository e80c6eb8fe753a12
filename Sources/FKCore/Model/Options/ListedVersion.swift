/// What the listing of a source said of a file when it was fetched, as a task keeps it. A later listing that says the same means the same
/// file. It is that of the finished file: only fetching it again, or finding that the server has the same one, changes it.
package enum ListedVersion {
    /// The attribute of a task that has it. A task has the attribute also where the source says no version: it shows that the task is of a
    /// source.
    package static let attribute = "source-version"
    /// The value for a file of which the source says no version.
    package static let unknown = "-"

    /// What becomes of the attributes of a request for a task whose finished file stays.
    ///
    /// - Parameter known: the attributes of the task.
    /// - Returns: the attributes to add, and true if the listing says another version than that of the finished file.
    package static func keeping(
        _ known: [String: String], _ asked: [String: String]
    ) -> (added: [String: String], isOutdated: Bool) {
        guard let new = asked[attribute] else { return (asked, false) }
        var added = asked
        // Nothing says that a file of another origin is this version.
        added[attribute] = known[attribute] == nil ? unknown : nil
        guard let old = known[attribute], old != unknown, new != unknown else { return (added, false) }
        return (added, old != new)
    }
}
