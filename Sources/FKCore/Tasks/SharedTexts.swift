import FKMiddleware

/// One copy of the texts that most tasks of a list have in common: folder, host, boot, barrels. A hundred thousand tasks
/// read from disk have each their own otherwise, some 300 bytes a task.
///
/// Texts are told apart by their bytes: an equivalent one in their place would be another folder.
struct SharedTexts {
    private var texts: Set<ExactText> = []
    private var lists: Set<[ExactText]> = []

    /// What is not common after all is not kept: so many, and it begins anew.
    private static let limit = 1_000

    mutating func share(_ entry: TaskEntry) {
        entry.host = shared(entry.host)
        if let directory = entry.record.task.directory { entry.record.task.directory = shared(directory) }
        if let bootID = entry.record.bootID { entry.record.bootID = shared(bootID) }
        if !entry.record.barrels.isEmpty { entry.record.barrels = shared(entry.record.barrels) }
    }

    mutating func shared(_ text: String) -> String {
        if texts.count >= Self.limit { texts = [] }
        return texts.insert(ExactText(text)).memberAfterInsert.text
    }

    private mutating func shared(_ list: [String]) -> [String] {
        if lists.count >= Self.limit { lists = [] }
        return lists.insert(list.map(ExactText.init)).memberAfterInsert.map(\.text)
    }
}
