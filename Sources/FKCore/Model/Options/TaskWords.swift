/// How a description that asks for a known task meets what the task has (`TaskDescription.joined`). A new task has no former words,
/// and no record stores these.
///
/// Without any, the description is the last word of a command: its orders replace the stored ones, and the facts that it does not
/// name stay.
package struct TaskWords: OptionSet, Codable, Sendable, Hashable {
    package let rawValue: Int

    package init(rawValue: Int) { self.rawValue = rawValue }

    /// Orders that are not named stay as well: a call of the library.
    package static let keepsOrders = TaskWords(rawValue: 1 << 0)
    /// The priority is named, also where it is 0.
    package static let namesPriority = TaskWords(rawValue: 1 << 1)
    /// The type is named, also where it is the default.
    package static let namesType = TaskWords(rawValue: 1 << 2)
    /// The mirrors are named, also where there are none.
    package static let namesMirrors = TaskWords(rawValue: 1 << 3)
    /// The digests that the task has are taken away (`--checksum none`).
    package static let dropsDigests = TaskWords(rawValue: 1 << 4)
    /// The options are those of a barrel and fill gaps only.
    package static let fillsOptions = TaskWords(rawValue: 1 << 5)
    /// A new version of the file is asked for, such as by a changed list: other digests replace the stored ones.
    package static let isNewVersion = TaskWords(rawValue: 1 << 6)
    /// The task keeps its state: it is loaded and not started.
    package static let keepsState = TaskWords(rawValue: 1 << 7)
}
