import FKCore
import FKEngine
import FKMiddleware
import FKTransport

/// The place of a source, as the commands import it.
package struct ListedPlace: Sendable {
    package let place: SourcePlace
    /// The choice besides the patterns.
    package var choice = SourceChoice()
    /// The answers of the last listing; nil for none.
    package var memory: ListedPlace.Memory?
    private let source: any Source
    private let environment: [String: String]
    private let said = Locked<SourcePage.Orders?>(nil)

    /// How the files are asked for, once a page was taken; nil if they need nothing.
    package var orders: SourcePage.Orders? { said.withLock(\.self) }

    package init(_ source: any Source, _ place: SourcePlace, _ environment: [String: String]) {
        (self.source, self.place, self.environment) = (source, place, environment)
    }

    /// The name for messages, and the origin of the barrel.
    package var title: String { place.title }
    /// The URL whose server the owner has named, and which alone may receive the secrets of a task; empty for none.
    package var secretOrigin: String { place.address ?? "" }
    /// The last part of the name, for a folder and a barrel.
    package var folderName: String { place.folderName }

    /// Asks the server for the files, a page at a time.
    ///
    /// - Parameters:
    ///   - include: patterns of the names to take; empty takes all.
    ///   - transport: is not shut down here.
    ///   - take: receives the files in order, a portion at a time, with the form of the list. They have no orders.
    /// - Returns: the list without its files; it has the origin, and the version as `commit`.
    /// - Throws: `DownloadError`, and the errors of `take`. The files that were taken are of no use then.
    package func files(
        include: [String], exclude: [String], _ options: TaskOptions, over transport: any Transport,
        _ take: ([Manifest.FileFacts], Manifest.Form) throws -> Void
    ) async throws -> ServerList {
        var choice = choice
        (choice.include, choice.exclude) = (include, exclude)
        var list = ServerList(.record)
        list.origin = place.title
        var keys: [String] = []
        let listing = SourceListing(source, place, choice, options, environment, memory: memory, over: transport)
        for try await page in listing.pages {
            if let orders = page.orders { said.withLock { $0 = orders } }
            if !page.files.isEmpty { try take(page.files, page.form ?? .record) }
            if let part = page.list { list.add(part) }
            for fault in page.faults {
                list.isIncomplete = list.isIncomplete || fault.isIncomplete
                let name = fault.name.isEmpty ? "" : "'\(fault.name)': "
                list.add(fault.error ?? ManifestError(form: .record, name + fault.reason))
            }
            list.passedOver.merge(page.leftOut, uniquingKeysWith: +)
            for key in page.leftOutKeys where keys.count < 100 && !keys.contains(key) { keys.append(key) }
            list.notes += page.notes.prefix(max(0, 100 - list.notes.count))
            if let version = page.version { list.commit = version }
        }
        if !keys.isEmpty {
            list.notes.append("the program's lines have keys that mean nothing here: \(keys.joined(separator: ", "))")
        }
        return list
    }

    /// The version that the server has now; nil if its name stands for one version.
    package func version(
        _ options: TaskOptions, over transport: any Transport
    ) async throws(DownloadError) -> String? {
        try await SourceListing(source, place, choice, options, environment, over: transport).version()
    }
}
