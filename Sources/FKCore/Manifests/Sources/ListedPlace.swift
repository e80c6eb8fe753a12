import FKCore
import FKMiddleware
import FKTransport

/// The place of a registered source, as the commands import it.
package struct ListedPlace: NamedSource {
    /// The place.
    package let place: SourcePlace
    /// The choice besides the patterns.
    package var choice = SourceChoice()
    private let source: any Source
    private let environment: [String: String]
    private let said = Locked<SourceOrders?>(nil)

    /// How the files are asked for, once a page was taken; nil if they need nothing.
    package var orders: SourceOrders? { said.withLock(\.self) }

    /// The place that a text names; nil for a text without a scheme.
    ///
    /// - Throws: same as `SourceRegistry.find`.
    package init?(
        _ text: String, in registry: SourceRegistry, _ environment: [String: String]
    ) throws(DownloadError) {
        guard let found = try registry.find(text, in: environment) else { return nil }
        (source, place) = found
        self.environment = environment
    }

    package var title: String { place.title }
    package var secretOrigin: String { place.address ?? "" }
    package var folderName: String? { place.folderName }

    package func files(
        include: [String], exclude: [String], _ options: TaskOptions, over transport: any Transport,
        _ take: ([Manifest.FileFacts], Manifest.Form) throws -> Void
    ) async throws -> ServerList {
        var choice = choice
        (choice.include, choice.exclude) = (include, exclude)
        var list = ServerList(.record)
        list.origin = place.title
        var keys: [String] = []
        for try await page in SourceListing(source, place, choice, options, environment, over: transport).pages {
            if let orders = page.orders { said.withLock { $0 = orders } }
            if !page.files.isEmpty { try take(page.files, .record) }
            for fault in page.faults {
                list.isIncomplete = list.isIncomplete || fault.isIncomplete
                let name = fault.name.isEmpty ? "" : "'\(fault.name)': "
                list.add(ManifestError(form: .record, name + fault.reason))
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

    package func version(
        _ options: TaskOptions, over transport: any Transport
    ) async throws(DownloadError) -> String? {
        try await SourceListing(source, place, choice, options, environment, over: transport).version()
    }
}
