import FKMiddleware
import Foundation

/// The records of repositories whose files have members of their own.
///
/// | member | record | digests |
/// | --- | --- | --- |
/// | `data`, `files` | Dataverse: a page of a version's files | `checksum`, `md5` |
/// | `@graph` | RO-Crate: the entities of type `File` | `sha256` and others |
/// | `distribution` | Croissant's and schema.org's files | `sha256`, `md5` |
/// | `linkset` | a link set (RFC 9264): targets of the relation `item` | none |
enum RecordShape: String, CaseIterable {
    case files
    case data
    case graph = "@graph"
    case distribution
    case linkset

    /// True if an element of the list has this shape, and not that of any list.
    func fits(_ object: JSONReader.Object) -> Bool {
        switch self {
        case .files, .data: object["dataFile"]?.object != nil
        case .graph, .distribution, .linkset: true
        }
    }

    /// The files of an element of the list.
    ///
    /// - Parameters:
    ///   - base: the URL of the document, for relative URLs; nil for none.
    ///   - passOver: is called with the kind of an element that cannot be fetched by itself.
    func files(
        of object: JSONReader.Object, _ base: RecordBase?, passOver: (String) -> Void
    ) throws(EntryFault) -> [Manifest.Entry] {
        switch self {
        case .files, .data: return [try Self.dataverse(object, base)]
        case .graph:
            guard object.types.contains(where: { $0 == "File" || $0 == "MediaObject" }) else { return [] }
            return [try Self.crate(object, base)]
        case .distribution:
            let isGit = object["encodingFormat"]?.string?.hasPrefix("git+") == true
            if isGit || object["containedIn"] != nil {
                passOver(isGit ? "git repository" : "file in an archive")
                return []
            }
            guard object.types.contains(where: { $0.hasSuffix("FileObject") || $0.hasSuffix("DataDownload") }) else {
                return []
            }
            return [try Self.described(object, name: object["name"]?.string, Self.text(object, "contentUrl"), base)]
        case .linkset:
            var entries: [Manifest.Entry] = []
            for item in object["item"]?.array ?? [] {
                guard let href = item.object?["href"]?.string else { throw EntryFault("an item has no 'href'") }
                entries.append(try Self.entry(name: nil, href, base))
            }
            return entries
        }
    }

    /// A table is fetched as it was uploaded: that file has the digest.
    private static func dataverse(_ object: JSONReader.Object, _ base: RecordBase?) throws(EntryFault) -> Manifest.Entry
    {
        guard let file = object["dataFile"]?.object else { throw EntryFault("the file has no 'dataFile'") }
        let original = file["originalFileName"]?.string ?? (file["originalFileFormat"] == nil ? nil : "")
        let own = try object["label"] == nil ? text(file, "filename") : text(object, "label")
        var name = original.flatMap { $0.isEmpty ? nil : $0 } ?? own
        if let folder = object["directoryLabel"]?.string, !folder.isEmpty { name = "\(folder)/\(name)" }
        guard let id = file["id"]?.integer else { throw EntryFault("'\(name)' has no 'id'") }
        guard let base else { throw EntryFault("'\(name)': give the server with --base URL") }
        let path = "/api/access/datafile/\(id)" + (original == nil ? "" : "?format=original")
        var entry = try entry(name: name, base.origin + path, nil)
        entry.size = try EntryFields.size(original == nil ? file["filesize"] : file["originalFileSize"])
        if let sum = file["checksum"]?.object, let value = sum["value"]?.string {
            try add(value, sum["type"]?.string ?? "md5", to: &entry)
        } else if let md5 = file["md5"]?.string {
            try add(md5, "md5", to: &entry)
        }
        return entry
    }

    /// A file of a crate: its id is its path in the crate, or its URL.
    private static func crate(_ object: JSONReader.Object, _ base: RecordBase?) throws(EntryFault) -> Manifest.Entry {
        let id = try text(object, "@id")
        let content = object["contentUrl"]?.array?.first ?? object["contentUrl"]
        let url = content?.string ?? content?.object?["@id"]?.string
        if id.contains("://") { return try described(object, name: nil, url ?? id, base) }
        let name = id.hasPrefix("#") ? nil : String(decoding: Array(id.utf8)[...].percentDecoded, as: UTF8.self)
        guard url != nil || base != nil else { throw EntryFault("'\(id)' has no 'contentUrl'") }
        return try described(object, name: name, url ?? id, base)
    }

    /// An entry with the size and the digests that schema.org has words for. A size in words, such as `17 kB`, is no size.
    private static func described(
        _ object: JSONReader.Object, name: String?, _ url: String, _ base: RecordBase?
    ) throws(EntryFault) -> Manifest.Entry {
        var entry = try entry(name: name, url, base)
        if let text = object["contentSize"]?.text { entry.size = try? ListRow.size(text) }
        for member in object.members {
            guard let text = member.value.string else { continue }
            switch DigestWord.meaning(of: member.name) {
            case .algorithm(let algorithm): try add(text, algorithm.rawValue, to: &entry)
            case .any:
                if case .digests(let all) = SpelledDigest(text) { for digest in all { _ = entry.digests.add(digest) } }
            default: break
            }
        }
        return entry
    }

    private static func add(_ text: String, _ type: String, to entry: inout Manifest.Entry) throws(EntryFault) {
        guard let algorithm = Checksum.Algorithm(member: type) ?? Checksum.Algorithm(listed: type) else { return }
        switch SpelledDigest(text, algorithm) {
        case .digests(let all): for digest in all { _ = entry.digests.add(digest) }
        case .none: break
        // A placeholder, such as the address of an issue.
        case .unknown where text.contains("://"): break
        case .unknown, .unsupported:
            throw EntryFault(
                "'\(entry.name ?? entry.sources.first?.url ?? "")': \(Checksum.fault(in: text, algorithm))")
        }
    }

    private static func entry(name: String?, _ url: String, _ base: RecordBase?) throws(EntryFault) -> Manifest.Entry {
        let url = url.contains("://") ? url : base?.resolve(url) ?? url
        try EntryFields.checkURL(url)
        let name = if let name { try EntryFields.name(name) } else { String?.none }
        return Manifest.Entry(name: name, sources: [Manifest.Source(url)])
    }

    private static func text(_ object: JSONReader.Object, _ member: String) throws(EntryFault) -> String {
        guard let text = object[member]?.string else { throw EntryFault("the file has no '\(member)'") }
        return text
    }
}

/// The URL of a record, to which its relative URLs are joined.
struct RecordBase {
    private let folder: BaseURL
    /// Scheme and host.
    let origin: String

    init(_ url: String) {
        folder = BaseURL(url)
        origin = String(folder.resolve("/").dropLast())
    }

    func resolve(_ reference: String) -> String {
        folder.resolve(reference.hasPrefix("./") ? String(reference.dropFirst(2)) : reference)
    }
}

extension JSONReader.Object {
    /// The values of `@type`.
    var types: [String] {
        let type = self["@type"]
        return (type?.array ?? [type].compactMap(\.self)).compactMap(\.string)
    }
}
