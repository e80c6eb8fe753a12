import FKCore
import FKMiddleware
import Foundation

extension Manifest.Entry {
    /// The attributes that keep a signature with its task. A longer signature than an attribute may hold is left out.
    enum SignatureKey {
        static let text = "signature"
        static let type = "signature-type"
    }

    /// The task of this entry: the first source is its URL, the others are its mirrors.
    ///
    /// | of the entry | of the task |
    /// | --- | --- |
    /// | `sources` | URL and mirrors |
    /// | `name` | file name, and a subfolder of `folder` |
    /// | `size` | `options.size` |
    /// | `digests` | `options.checksum`: the strongest |
    /// | `pieces` | compared while they arrive: the strongest; of a single piece `options.checksum`, if there is none |
    /// | `headers`, `options` | header fields and options of the same meaning |
    /// | the options `gid` and `pause` of aria2's lists | the attribute `gid`; `startsSuspended` |
    /// | `signature` | the attributes `signature` and `signature-type` |
    ///
    /// - Parameters:
    ///   - folder: the absolute path of the folder for the file; nil keeps it inside the work path.
    ///   - options: the options that all tasks share.
    ///   - bindsSize: true if a file of another length than `size` is refused.
    /// - Throws: `EntryFault` for an entry without a URL, with an impossible URL, or with a name that leaves the folder.
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
        if let checksum { own.checksum = checksum }
        if bindsSize, let size { own.size = size }
        try Self.take(pieces.filter { $0.count > 0 }, as: &own)
        Aria2Options.apply(self.options, url: first.url, to: &own)
        if !headers.isEmpty {
            let all = (own.headers ?? []) + headers
            own.headers = all
            own.secretHeaders = HeaderField.secretNames(of: all)
            // Fields of the command line are for the first address only.
            let names = Set(headers.map { $0.name.lowercased() })
                .subtracting((options.headers ?? []).map { $0.name.lowercased() })
            own.listHeaders = names.isEmpty ? nil : names.sorted()
        }
        task.options = own
        if let gid = self.options.last(where: { $0.name == "gid" })?.value, GID.isWhole(gid) {
            task.attributes[GID.attribute] = gid.lowercased()
        }
        if self.options.last(where: { $0.name == "pause" })?.value == "true" { task.startsSuspended = true }
        if let signature, signature.text.utf8.count <= AttributeRules.maxValueBytes {
            task.attributes[SignatureKey.text] = signature.text
            task.attributes[SignatureKey.type] = String(signature.mediaType.prefix(255))
        }
        return task
    }

    /// A file without pieces of its own has none, whatever the shared options say.
    private static func take(_ pieces: [Manifest.Pieces], as options: inout TaskOptions) throws(EntryFault) {
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
        do throws(DownloadError) { return try URLNormalizer.normalize(url) } catch {
            throw EntryFault("'\(URLMasking.mask(url))': \(error.message)")
        }
    }
}

extension Builder {
    /// Creates a builder for a file of a list.
    ///
    /// Its URL, mirrors, size, strongest digest, header fields and options are those of the entry. A file of another
    /// size is refused.
    ///
    /// - Parameters:
    ///   - entry: an entry of a parsed list.
    ///   - folder: the folder for the list's files. The entry's name may have subfolders, which are created.
    /// - Throws: `.invalidArgument` for an entry without a URL, with an impossible URL, or with a name that leaves the
    ///   folder, also through symbolic links.
    public init(_ entry: Manifest.Entry, in folder: URL) throws(DownloadError) {
        var folders = EntryFolders()
        do throws(EntryFault) {
            if let name = entry.name, let fault = ManifestName.fault(in: name) {
                throw EntryFault("'\(name)': \(fault)")
            }
            let task = try entry.task(in: TaskDescription.directory(folder), TaskOptions(), &folders)
            self.init(description: task)
        } catch {
            throw DownloadError(.invalidArgument, "A file of the list cannot be fetched: \(error.reason).")
        }
    }
}
