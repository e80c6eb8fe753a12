import FKCore
import FKManifests
import FKMiddleware

/// A repository of a hub, or a record: `hf:…`, `doi:…`, `zenodo:…` or a URL.
struct SourceImport: Sendable {
    let source: any NamedSource
    private let include: [String]
    private let exclude: [String]
    private let layout: HubLayout.Choice

    /// Reads a name; nil for a path.
    init?(_ text: String, _ arguments: ParsedArguments, _ context: CommandContext) throws {
        if let fault = InputURL.fault(in: text), text.hasPrefix("magnet:") || text.hasPrefix("torrent:") {
            throw arguments.error("\(fault).")
        }
        do throws(DownloadError) {
            guard let source = try NamedSources.find(text, in: context.environment) else { return nil }
            self.source = source
        } catch {
            throw arguments.error(error.message)
        }
        include = arguments.all("include")
        exclude = arguments.all("exclude")
        layout = try arguments.choice("layout", "--layout", of: HubLayout.Choice.self) ?? .plain
        if layout == .hub, !(source is HubSource) {
            throw arguments.error("--layout hub is about a repository of a hub: hf:OWNER/REPO.")
        }
    }

    /// Asks for the files, and makes their tasks.
    ///
    /// - Throws: `CommandFailure` if no file is chosen, or no entry can be used.
    func listed(
        _ settings: ListedTasks.Settings, _ context: CommandContext, over transport: any Transport
    ) async throws -> ListedTasks {
        var manifest = try await source.files(
            include: include, exclude: exclude, settings.options, over: transport)
        if layout == .hub, let hub = source as? HubSource {
            try HubLayout.apply(to: &manifest, of: hub.reference, in: settings.folder)
        }
        guard !manifest.entries.isEmpty || manifest.faultCount > 0 else {
            throw CommandFailure(
                "\(source.title): no file is chosen. See --include and --exclude.", status: ExitStatus.usage)
        }
        return try ListedTasks(manifest, from: source.title, settings, context)
    }
}
