import FKMiddleware
import Foundation

/// One copy of the texts that most tasks of a list have in common: folder, host, boot, barrels. Without it, a hundred
/// thousand tasks read from disk have copies of about 300 bytes each.
///
/// Texts are compared by their bytes, since an equivalent text would name another folder.
struct SharedTexts {
    private var texts: Set<ExactText> = []
    private var lists: Set<[ExactText]> = []
    private var lastSite = ""
    private var lastFolder = ""

    /// The maximum number of stored texts and of lists. Beyond it, the store is emptied and begins again.
    private static let limit = 1_000

    /// Replaces the texts of a task by the shared copies.
    mutating func share(_ entry: TaskEntry) {
        // The tasks of one addition share their folder already. A change would copy the record and the description.
        if let directory = entry.record.task.directory, !isLastFolder(directory) {
            lastFolder = shared(directory)
            entry.record.place(in: lastFolder)
        }
        if let bootID = entry.record.bootID { entry.record.bootID = shared(bootID) }
        if !entry.record.barrels.isEmpty { entry.record.barrels = shared(entry.record.barrels) }
    }

    /// `site` of a URL, as a shared copy. The tasks of a list mostly have the same one, which is recognised by its
    /// bytes.
    mutating func site(of url: String) -> String {
        if hasLastSite(url) { return lastSite }
        lastSite = shared(url.site)
        return lastSite
    }

    /// True for the same memory as that of the last folder.
    private func isLastFolder(_ folder: String) -> Bool {
        folder.utf8.withContiguousStorageIfAvailable { folder in
            lastFolder.utf8.withContiguousStorageIfAvailable { $0.baseAddress == folder.baseAddress }
        } == true
    }

    private func hasLastSite(_ url: String) -> Bool {
        guard !lastSite.isEmpty else { return false }
        return url.utf8.withContiguousStorageIfAvailable { url in
            lastSite.utf8.withContiguousStorageIfAvailable { site in
                url.count > site.count && url[site.count] == UInt8(ascii: "/")
                    && memcmp(url.baseAddress!, site.baseAddress!, site.count) == 0
            }
        } == true
    }

    /// The shared copy of a text.
    mutating func shared(_ text: String) -> String {
        if texts.count >= Self.limit { texts = [] }
        return texts.insert(ExactText(text)).memberAfterInsert.text
    }

    private mutating func shared(_ list: [String]) -> [String] {
        if lists.count >= Self.limit { lists = [] }
        return lists.insert(list.map(ExactText.init)).memberAfterInsert.map(\.text)
    }
}
