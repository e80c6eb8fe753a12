import FKCore
import FKEngine
import FKMiddleware
import Foundation

extension Manifest.FileFacts {
    /// The attributes that keep a signature with its task. A longer signature than an attribute may hold is left out.
    enum SignatureKey {
        static let text = "signature"
        static let type = "signature-type"
    }

    /// The task of this file: the first source is its URL, the others are its mirrors. Everything that is no fact of the list
    /// comes from `options`.
    ///
    /// | of the list | of the task |
    /// | --- | --- |
    /// | `sources` | URL and mirrors |
    /// | `name` | file name, and a subfolder of `folder` |
    /// | `size` | `options.size` |
    /// | `entityTag` | `options.entityTag` |
    /// | `digests` | `options.checksum`: the strongest, unless the shared options have one |
    /// | `pieces` | compared while they arrive: the strongest; of a single piece `options.checksum`, if there is none |
    /// | `signature` | the attributes `signature` and `signature-type` |
    ///
    /// - Parameters:
    ///   - folder: the absolute path of the folder for the file; nil keeps it inside the work path.
    ///   - options: the options that all tasks share.
    ///   - bindsSize: true if a file of another length than `size` is refused.
    /// - Throws: `EntryFault` for a file without a URL, with an impossible URL, or with a name that leaves the folder.
    package func task(
        in folder: String?, _ options: TaskOptions, _ folders: inout EntryFolders, bindsSize: Bool = true
    ) throws(EntryFault) -> TaskDescription {
        guard let first = sources.first else { throw EntryFault("'\(name ?? "")' has no address") }
        var task = TaskDescription(url: try Self.normalize(first.url))
        if sources.count > 1 {
            task.mirrors = try sources.dropFirst().map { source throws(EntryFault) in try Self.normalize(source.url) }
        }
        task.directory = folder
        if let name {
            guard let folder else { throw EntryFault("'\(name)' needs a folder") }
            let place = try folders.place(of: name, under: folder)
            task.directory = place.folder
            task.fileName = place.name
        }
        var own = options
        if own.checksum == nil { own.checksum = checksum }
        if bindsSize, let size { own.size = size }
        own.entityTag = entityTag
        try Self.store(pieces.filter { $0.count > 0 }, as: &own)
        task.options = own
        if let signature, signature.text.utf8.count <= AttributeRules.maxValueBytes {
            task.attributes[SignatureKey.text] = signature.text
            task.attributes[SignatureKey.type] = String(signature.mediaType.prefix(255))
        }
        return task
    }

    /// A file without pieces of its own has none, whatever the shared options say.
    private static func store(_ pieces: [Manifest.Pieces], as options: inout TaskOptions) throws(EntryFault) {
        options.pieces = nil
        if let single = pieces.first(where: { $0.count == 1 }) {
            guard options.checksum == nil, let algorithm = Checksum.Algorithm(rawValue: single.algorithm.rawValue)
            else {
                return
            }
            options.checksum = try? Checksum(algorithm, hex: Digester.hex(single.bytes))
        } else if !pieces.isEmpty {
            guard let digests = pieces.lazy.compactMap({ PieceDigests($0) }).first else {
                throw EntryFault("the digests of its pieces are longer than \(PieceDigests.maxBytes >> 20) MiB")
            }
            options.pieces = digests
        }
    }

    private static func normalize(_ url: String) throws(EntryFault) -> String {
        do throws(DownloadError) { return try url.normalizedURL() } catch {
            // It may be megabytes long.
            let shown = url.masked
            throw EntryFault("'\(shown.count > 200 ? shown.prefix(100) + "..." : shown)': \(error.message)")
        }
    }
}

extension Manifest.FileOrders {
    /// Gives the orders to a task.
    ///
    /// | of the list | of the task |
    /// | --- | --- |
    /// | `headers`, `options` | header fields and options of the same meaning |
    /// | the option `adopt` | `options.adopts`, below `folder` |
    /// | the options `gid` and `pause` of aria2's lists | the attribute `gid`; `startsSuspended` |
    ///
    /// - Parameters:
    ///   - folder: the absolute path of the folder for the files of the list; nil allows an absolute path of a partial file alone.
    ///   - url: the first URL of the entry, as written.
    ///   - shared: the options that all tasks share.
    /// - Throws: `EntryFault` for options that exclude each other.
    func apply(to task: inout TaskDescription, in folder: String?, url: String, shared: TaskOptions) throws(EntryFault)
    {
        guard !headers.isEmpty || !options.isEmpty else { return }
        var own = task.options
        Aria2Options.apply(options, url: url, to: &own)
        if let fault = Aria2Options.fault(in: options, over: own) { throw EntryFault(fault) }
        if !headers.isEmpty {
            let all = (own.headers ?? []) + headers
            own.headers = all
            own.secretHeaders = HeaderField.secretNames(of: all)
            // Fields of the command line are for the first address only.
            let names = Set(headers.map { $0.name.lowercased() })
                .subtracting((shared.headers ?? []).map { $0.name.lowercased() })
            own.listHeaders = names.isEmpty ? nil : names.sorted()
        }
        if let given = options.last(where: { $0.name == "adopt" })?.value {
            let path = given.hasSuffix(".aria2") ? String(given.dropLast(6)) : given
            guard let folder = path.hasPrefix("/") ? "" : folder.map({ "\($0)/" }) else {
                throw EntryFault("the partial file '\(given)' needs a folder")
            }
            own.adoptPath = folder + path
        }
        task.options = own
        if let gid = options.last(where: { $0.name == "gid" })?.value, GID.isWhole(gid) {
            task.attributes[GID.attribute] = gid.lowercased()
        }
        if options.last(where: { $0.name == "pause" })?.value == "true" { task.startsSuspended = true }
    }
}

extension Manifest.Entry {
    /// The task of an entry of the owner's list: the task of its facts with its orders. The caller decides about `directory`.
    ///
    /// Parameters and errors are those of `FileFacts.task`.
    package func task(
        in folder: String?, _ options: TaskOptions, _ folders: inout EntryFolders, bindsSize: Bool = true
    ) throws(EntryFault) -> TaskDescription {
        var task = try facts.task(in: folder, options, &folders, bindsSize: bindsSize)
        try orders.apply(to: &task, in: folder, url: sources.first?.url ?? "", shared: options)
        return task
    }
}

extension Builder {
    /// Creates a builder for a file of a list.
    ///
    /// Its URL, mirrors, size and strongest digest are those of the entry. A file of another size is refused.
    ///
    /// - Parameters:
    ///   - entry: an entry of a parsed list.
    ///   - folder: the folder for the list's files. The entry's name may have subfolders, which are created.
    ///   - takesOrders: true also takes the entry's header fields and options, which may name a proxy, replace files and read
    ///     `~/.netrc`. Pass true only for a list that the user has chosen, not for one that a server sent. The default is false.
    /// - Throws: `.invalidArgument` for an entry without a URL, with an impossible URL, or with a name that leaves the
    ///   folder, also through symbolic links.
    public init(
        _ entry: Manifest.Entry, in folder: URL, takesOrders: Bool = false
    ) throws(DownloadError) {
        var folders = EntryFolders()
        do throws(EntryFault) {
            if let name = entry.name, let fault = name.listedPathFault {
                throw EntryFault("'\(name)': \(fault)")
            }
            let entry = takesOrders ? entry : Manifest.Entry(entry.facts)
            self.init(description: try entry.task(in: TaskDescription.directory(folder), TaskOptions(), &folders))
            replacing = .named
        } catch {
            throw DownloadError(.invalidArgument, "A file of the list cannot be fetched: \(error.reason).")
        }
    }
}
