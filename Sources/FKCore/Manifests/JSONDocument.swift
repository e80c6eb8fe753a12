import FKMiddleware

/// Reads JSON by its members, whatever program wrote it: an array of files, or an object with such arrays.
///
/// | member | written by |
/// | --- | --- |
/// | none (an array), `members` | `fk barrel export`, flatpak's sources, many APIs |
/// | `files`, `entries` | Zenodo, figshare, Modrinth, PyPI, Internet Archive |
/// | `assets` | releases of GitHub and Gitea; STAC and releases of GitLab, where it is an object |
/// | `data` | Dataverse, JSON:API |
/// | `resources` | Data Package, CKAN |
/// | `@graph`, `distribution`, `linkset` | RO-Crate; Croissant and schema.org; link sets (RFC 9264) |
/// | any other | an array with an object that has an address with a size, a digest or a `filename` |
/// | none, `urls`, `files`, `downloads` | an array of addresses |
///
/// `ListField` has the names of an object's members. An object with a list of files in it describes them: its own address is a
/// page's. `Reading.baseURL` is the URL of the folder that relative URLs refer to; for Dataverse it names the server.
struct JSONDocument: JSONListFormat {
    var list: JSONList
    var collector: ManifestCollector
    private let rules: ListRules
    private let base: RecordBase?
    /// The members of the outermost object, at most 100.
    private var seen: [String] = []
    /// True if an array has a name that lists of files have.
    private var hasListName = false
    /// `https://archive.org/download/ITEM/` in an answer of the Internet Archive.
    private var archive: BaseURL?
    /// The repository that a Croissant of a hub is about.
    private var hub: String?
    private var count = 0
    /// The array of an unknown name that is read.
    private var current = OpenArray()
    /// The first object that has an address alone, in an array without a file.
    private var unsure: (list: String, member: String, line: Int)?

    /// An array of an unknown name. Objects with an address alone are files if another object of it is one.
    private struct OpenArray {
        var number = 0
        var hasFile = false
        /// The objects with an address alone in front of the first file.
        var waiting: [JSONList.Element] = []
        /// The number of those that were too many.
        var tooMany = 0
        static let maxWaiting = 10_000
    }

    init(_ form: Manifest.Form, _ reading: Manifest.Reading, maxEntry: Int = Manifest.Reading.maxDocumentEntry) {
        list = JSONList(form, maxEntry: maxEntry)
        collector = ManifestCollector(form, reading)
        rules = ListRules(reading)
        base = reading.baseURL.map(RecordBase.init)
    }

    mutating func record(_ event: JSONList.Event) {
        switch event {
        case .container(let name, let isArray):
            see(name)
            guard isArray, JSONFiles.listNames.contains(name) else { return }
            hasListName = true
            if name != "members" { collector.manifest.form = .record }
        case .member(let name, let value):
            see(name)
            switch name {
            case "name": collector.manifest.facts.barrel = value.string
            case "origin": collector.manifest.facts.origin = value.string
            case "commit": collector.manifest.facts.commit = value.string
            // The version: a record of Zenodo has a number for each.
            case "id", "version", "versionId":
                if let text = value.text { collector.manifest.facts.commit = text }
            case "dir":
                let parts = value.string?.split(separator: "/") ?? []
                if parts.count == 3, parts[1] == "items" {
                    archive = BaseURL("https://archive.org/download/\(parts[2])/")
                }
            default: break
            }
        default: break
        }
    }

    private mutating func see(_ name: String) { if seen.count < 100 { seen.append(name) } }

    mutating func add(_ element: JSONList.Element) throws(ManifestError) {
        if element.array != current.number { current = OpenArray(number: element.array) }
        let found = try read(element)
        if let member = found.unsure {
            unsure = unsure ?? (element.list, member, element.line)
            if current.waiting.count < OpenArray.maxWaiting {
                current.waiting.append(element)
            } else {
                current.tooMany += 1
            }
        } else if found.isListed, !current.hasFile {
            let before = current
            current = OpenArray(number: element.array, hasFile: true)
            for other in before.waiting { _ = try read(other) }
            let kind = "object of '\(element.list.masked)' with an address alone"
            for _ in 0..<before.tooMany { collector.passOver(kind, line: element.line) }
        }
    }

    private mutating func read(_ element: JSONList.Element) throws(ManifestError) -> JSONFiles.Found {
        var reader = JSONFiles(
            rules: rules, base: base, archive: archive, isOwn: element.list == "members" || element.list.isEmpty)
        reader.takesAddresses = current.hasFile
        var found = JSONFiles.Found()
        do throws(EntryFault) {
            try reader.read(element.object, of: element.list, line: element.line, into: &found)
            for bucket in found.buckets { try collector.check(bucket: bucket, line: element.line) }
        } catch {
            try collector.leaveOut(
                ManifestError(form: collector.manifest.form, line: element.line, column: element.column, error.reason))
            return found
        }
        if !found.entries.isEmpty || !found.passedOver.isEmpty { count += 1 }
        for kind in found.passedOver { collector.passOver(kind, line: element.line) }
        hub = hub ?? found.hub
        for fault in found.faults {
            try collector.leaveOut(
                ManifestError(form: collector.manifest.form, line: element.line, column: element.column, fault))
        }
        for entry in found.entries { try collector.add(entry, column: element.column) }
        return found
    }

    mutating func end() throws(ManifestError) {
        if let hub, collector.manifest.entries.isEmpty, collector.isEmpty {
            throw ManifestError(
                form: .record, "the description of a hub's repository has no files of its own: import \(hub)")
        }
        guard count == 0, collector.manifest.faultCount == 0, !hasListName, !list.isArray else { return }
        if let foreign = ForeignList.json(seen) { throw ManifestError(form: nil, foreign) }
        if let unsure {
            throw ManifestError(
                form: collector.manifest.form, line: unsure.line,
                "the objects of '\(unsure.list.masked)' have addresses and neither size, digest nor file name, and may be "
                    + "pages: if they are files, add --column 'url=\(unsure.member)'")
        }
        let names = seen.prefix(8).map { "'\($0.masked)'" }.joined(separator: ", ")
        throw ManifestError(
            form: collector.manifest.form,
            "the object has no array of files with addresses, but \(names.isEmpty ? "nothing" : names): it is no list of downloads"
        )
    }
}

/// Reads the files of an object of a list.
struct JSONFiles {
    let rules: ListRules
    let base: RecordBase?
    let archive: BaseURL?
    /// True in the form of `fk`: `directory` is an order, and `expected` the size without being binding.
    let isOwn: Bool
    /// True if an object of an array of an unknown name is a file if it has an address.
    var takesAddresses = false

    struct Found {
        var entries: [Manifest.Entry] = []
        var passedOver: [String] = []
        /// The reasons for files that are left out.
        var faults: [String] = []
        var hub: String?
        /// The buckets of addresses `s3://BUCKET/KEY`.
        var buckets: [String] = []
        /// True for a file in an array of an unknown name.
        var isListed = false
        /// The member with the address, in an object that has nothing else that a file has.
        var unsure: String?

        /// Adds what a row says beside its file.
        mutating func absorb(_ row: ListRow) {
            passedOver += row.notUnderstood
            if let bucket = row.bucket { buckets.append(bucket) }
        }
    }

    /// The names of arrays whose objects are files if they have an address. In other arrays they need a size, a digest or a file name as well.
    static let listNames: Set<String> = [
        "members", "files", "entries", "data", "@graph", "distribution", "linkset", "assets", "resources", "urls",
        "downloads",
        "attachments", "artifacts",
    ]
    /// Of these, an object without an address is a fault.
    private static let certain: Set<String> = ["", "members", "files", "entries", "assets", "distribution"]
    /// Types of objects that are no files.
    private static let folders: Set<String> = ["folder", "directory", "dir", "tree"]
    private static let noFiles: Set<String> = ["inline", "script", "shell", "git", "svn", "bzr", "patch", "command"]

    /// - Parameter list: the name of its list.
    /// - Throws: `EntryFault` for an object that is left out.
    func read(_ object: JSONReader.Object, of list: String, line: Int, into found: inout Found) throws(EntryFault) {
        let before = found.entries.count
        defer { for index in found.entries.indices.dropFirst(before) { found.entries[index].line = line } }
        if let shape = RecordShape(rawValue: list), shape.fits(object) {
            let entries = try shape.files(of: object, base) { found.passedOver.append($0) }
            found.hub = found.hub ?? Self.hub(object)
            found.entries += entries
            return
        }
        let attributes = object["attributes"]?.object
        if let type = object["type"]?.string ?? object["kind"]?.string, Self.folders.contains(type) { return }
        if let kind = attributes?["kind"]?.string, Self.folders.contains(kind) { return }
        if let type = object["type"]?.string {
            if Self.noFiles.contains(type), object["sha256"] == nil { return found.passedOver.append("\(type) source") }
        }
        if list == "resources", let path = object["path"], object["url"] == nil {
            return try dataPackage(object, path, line, into: &found)
        }
        if list == "assets", !isFile(object), object["url"] == nil {
            return try self.assets(object, of: object, line, into: &found)
        }
        if let assets = object["assets"]?.object { return try self.assets(assets, of: object, line, into: &found) }
        if try nested(object, list, line, into: &found) { return }
        let isKnown = Self.listNames.contains(list) || list.isEmpty
        if !isKnown {
            found.isListed = takesAddresses || isFile(object)
            guard found.isListed else { return found.unsure = addressMember(object) }
            guard hasAddress(object) else {
                return found.passedOver.append("object of '\(list.masked)' without an address")
            }
        }
        if let entry = try file(object, list, line, into: &found) { found.entries.append(entry) }
    }

    /// The files of the arrays in an object, which describes them: a release, a record of a search, an item.
    ///
    /// - Returns: false if it has none.
    private func nested(
        _ object: JSONReader.Object, _ list: String, _ line: Int, into found: inout Found
    ) throws(EntryFault) -> Bool {
        var isParent = false
        for member in object.members {
            // PyPI and GitHub name the same files in other places again.
            guard !["links", "mirrors", "releases", "authors", "creators"].contains(member.name) else { continue }
            let values =
                member.value.array ?? member.value.object?["files"]?.array ?? member.value.object?["entries"]?.array
                ?? []
            let isList = Self.listNames.contains(member.name)
            let takesAddresses = isList || values.contains { $0.object.map(isFile) ?? false }
            var inner = Found()
            var isAny = false
            for value in values {
                guard let file = value.object,
                    isFile(file) || takesAddresses && hasAddress(file) || isList && file["dataFile"] != nil
                else {
                    continue
                }
                isAny = true
                do throws(EntryFault) {
                    try read(file, of: isList ? member.name : "files", line: line, into: &inner)
                } catch {
                    inner.faults.append(error.reason)
                }
            }
            guard isAny else { continue }
            isParent = true
            // Files of several releases have equal names.
            if let folder = object["tag_name"]?.string ?? object["id"]?.text,
                list.isEmpty || Self.listNames.contains(list)
            {
                for index in inner.entries.indices { Self.move(&inner.entries[index], to: folder) }
            }
            found.entries += inner.entries
            found.faults += inner.faults
            found.passedOver += inner.passedOver
            found.buckets += inner.buckets
        }
        return isParent
    }

    /// True for an object that is a file, whatever the name of its list: it has a download's address, or an address with a size, a
    /// digest or the name of a file.
    func isFile(_ object: JSONReader.Object) -> Bool {
        var hasAddress = false
        var hasProof = false
        for member in object.members where !member.value.isNull {
            if member.name == "links", let links = member.value.object,
                links["content"] != nil || links["download"] != nil
            {
                return true
            }
            switch rules.field(of: member.name) {
            case .address(let rank) where Self.isAddress(member.value):
                if rank <= .file { return true }
                hasAddress = true
            case .size, .digest(.algorithm), .digest(.any), .name(0): hasProof = true
            default: break
            }
        }
        return hasAddress && hasProof
    }

    private func hasAddress(_ object: JSONReader.Object) -> Bool { addressMember(object) != nil }

    /// The first member with an address; nil without one.
    private func addressMember(_ object: JSONReader.Object) -> String? {
        object.members.first { member in
            if member.name == "links" {
                return member.value.object?["self"] != nil || member.value.object?["content"] != nil
            }
            return rules.field(of: member.name)?.isAddress == true && Self.isAddress(member.value)
        }?.name
    }

    private static func isAddress(_ value: JSONReader.Value) -> Bool {
        switch value {
        case .string(let text): text.contains("/")
        case .array(let values):
            values.contains { isAddress($0) || $0.object?["url"] != nil || $0.object?["href"] != nil }
        case .object(let object): object["url"] != nil || object["href"] != nil
        default: false
        }
    }

    // MARK: One file

    /// Reads a file; nil for an object that is none.
    private func file(
        _ object: JSONReader.Object, _ list: String, _ line: Int, into found: inout Found
    ) throws(EntryFault) -> Manifest.Entry? {
        var row = ListRow(line, rules)
        var own = Own()
        try read(object, into: &row, &own, isTitled: list == "resources")
        if let archive, !row.hasAddress, let name = object["name"]?.string {
            try row.set(.address(.chosen), archive.url(of: try EntryFields.name(name)))
        }
        let hasName = list.isEmpty ? row.hasName : row.hasFileName && ["files", "entries"].contains(list)
        guard row.hasAddress || rules.template != nil || rules.base != nil && hasName else {
            guard Self.certain.contains(list) else { return nil }
            let name = (object["key"] ?? object["filename"] ?? object["name"])?.string.map { "'\($0)'" } ?? "the file"
            throw EntryFault(
                isOwn ? "the member has no 'url'" : list.isEmpty ? "it has no URL" : "\(name) has no address")
        }
        var entry = try row.finished()
        found.absorb(row)
        if isOwn {
            entry.directory = own.directory
            if let folder = entry.directory, folder.isEmpty || folder.utf8.contains(0) {
                throw EntryFault("its 'directory' is no folder")
            }
            if let expected = own.expected {
                entry.size = expected
                entry.facts.bindsSize = false
            }
            entry.pieces = try EntryFields.pieces(object["pieces"], size: entry.size)
        }
        return entry
    }

    /// Members of `fk`'s own form.
    private struct Own {
        var directory: String?
        var expected: Int64?
    }

    /// - Parameter isTitled: true if `name` is a title.
    private func read(
        _ object: JSONReader.Object, into row: inout ListRow, _ own: inout Own, isTitled: Bool = false
    ) throws(EntryFault) {
        for member in object.members where !member.value.isNull {
            if let text = member.value.text, row.needs(member.name) { row.set(value: text, of: member.name) }
            switch member.name {
            case "directory" where isOwn:
                own.directory = member.value.string
                continue
            case "expected" where isOwn:
                own.expected = try EntryFields.size(member.value)
                continue
            // The file as `fk` has stored it.
            case "path" where isOwn && (object["fileName"] != nil || object["state"] != nil): continue
            // Of JSON:API.
            case "attributes" where object["url"] == nil, "extra":
                if let inner = member.value.object { try read(inner, into: &row, &own) }
                continue
            case "links":
                if let links = member.value.object {
                    for (name, rank) in [("content", ListField.AddressRank.file), ("download", .file), ("self", .page)]
                    {
                        guard let value = links[name] else { continue }
                        try read(value, .address(rank), name, into: &row)
                        break
                    }
                    continue
                }
            default: break
            }
            guard let field = rules.field(of: member.name) else { continue }
            // The name of a resource is a title.
            if isTitled, field == .name(1) { continue }
            try read(member.value, field, member.name, into: &row)
        }
    }

    /// Reads the values of a member: a text or number, an array of them, or an object.
    private func read(
        _ value: JSONReader.Value, _ field: ListField, _ name: String, into row: inout ListRow
    ) throws(EntryFault) {
        switch field {
        case .address, .mirror:
            for value in value.array ?? [value] {
                let inner = value.object.flatMap { $0["url"] ?? $0["href"] ?? $0["@id"] }
                guard let text = (inner ?? value).string else {
                    throw EntryFault(isOwn ? "an address is no text" : "its '\(name)' is no text")
                }
                guard case .mirror = field else {
                    try row.set(field, text, of: name)
                    continue
                }
                var source = Manifest.Source(text)
                if let number = value.object?["priority"]?.integer {
                    source.priority = min(max(Int(clamping: number), 1), Manifest.Source.lowestPriority)
                }
                source.location = value.object?["location"]?.string
                row.add(mirror: source)
            }
        case .digest(let meaning):
            for value in value.array ?? [value] { try read(digest: value, meaning, name, into: &row) }
        default:
            guard let text = (value.array?.first ?? value).text else {
                // An object under a name such as `file` has another meaning.
                if value.object != nil { return }
                if field == .size { return row.passOverSize() }
                throw EntryFault("its '\(name)' is no text")
            }
            try row.set(field, text, of: name)
        }
    }

    /// A digest, or an object with digests: by the names of algorithms, or as `type` and `value`.
    private func read(
        digest value: JSONReader.Value, _ meaning: DigestWord.Meaning, _ name: String, into row: inout ListRow
    ) throws(EntryFault) {
        guard let object = value.object else {
            guard let text = value.text else { return }
            return try row.set(.digest(meaning), text, of: name)
        }
        if let type = (object["type"] ?? object["algorithm"] ?? object["name"])?.string,
            let text = (object["value"] ?? object["checksum"] ?? object["digest"] ?? object["hash"])?.string
        {
            let word = DigestWord.meaning(of: type) ?? .unsupported(String(type.prefix(20)))
            return try row.set(.digest(word), text, of: name)
        }
        for member in object.members {
            guard let text = member.value.string else { continue }
            if let algorithm = Checksum.Algorithm(member: member.name) {
                try row.set(.digest(.algorithm(algorithm)), text, of: member.name)
            } else if let word = DigestWord.meaning(of: member.name) {
                try row.set(.digest(word), text, of: member.name)
            }
        }
    }

    // MARK: Shapes

    /// A resource of a Data Package: the path is its address and its name, and the digest without an algorithm is an MD5.
    private func dataPackage(
        _ object: JSONReader.Object, _ path: JSONReader.Value, _ line: Int, into found: inout Found
    ) throws(EntryFault) {
        let paths = (path.array ?? [path]).compactMap(\.string)
        for text in paths {
            var row = ListRow(line, rules)
            if text.contains("://") {
                try row.set(.address(.chosen), text)
            } else {
                guard let base else {
                    throw EntryFault("'\(text)': give the URL of the package's folder with --base URL")
                }
                try row.set(.path(0), text)
                try row.set(.address(.chosen), base.resolve(text.hasPrefix("./") ? text : BaseURL.encoded(text)))
            }
            if paths.count == 1 {
                if let size = object["bytes"]?.text { try row.set(.size, size) }
                if let hash = object["hash"]?.string { try row.set(.digest(.any(isCertain: true)), hash) }
            }
            found.entries.append(try row.finished())
            found.absorb(row)
        }
    }

    /// The assets of an item of STAC, or the arrays of a release of GitLab.
    private func assets(
        _ assets: JSONReader.Object, of object: JSONReader.Object, _ line: Int, into found: inout Found
    ) throws(EntryFault) {
        if assets.members.contains(where: { $0.value.object?["href"] != nil }) {
            return try spatial(object, assets, line, into: &found)
        }
        let before = found.entries.count
        for file in assets.members.flatMap({ $0.value.array ?? [] }) {
            if let file = file.object { try read(file, of: "files", line: line, into: &found) }
        }
        guard let tag = object["tag_name"]?.string else { return }
        for index in found.entries.indices.dropFirst(before) { Self.move(&found.entries[index], to: tag) }
    }

    /// Puts a file into the folder of its release or item.
    private static func move(_ entry: inout Manifest.Entry, to folder: String) {
        let name = entry.name ?? FileNameRules.name(url: entry.sources[0].url, head: nil)
        let whole = "\(folder.replacing("/", with: "_"))/\(name)"
        if whole.listedPathFault == nil { entry.name = whole }
    }

    /// The assets of an item of STAC.
    private func spatial(
        _ object: JSONReader.Object, _ assets: JSONReader.Object, _ line: Int, into found: inout Found
    ) throws(EntryFault) {
        for member in assets.members {
            guard let asset = member.value.object, asset["href"]?.string != nil else { continue }
            var row = ListRow(line, rules)
            do throws(EntryFault) {
                for part in asset.members where part.name != "title" && part.name != "name" {
                    guard !part.value.isNull, let field = rules.field(of: part.name) else { continue }
                    switch field {
                    case .address, .size, .digest: try read(part.value, field, part.name, into: &row)
                    default: break
                    }
                }
                if let size = asset["file:size"]?.text { try row.set(.size, size) }
                if let digest = asset["file:checksum"]?.string { try row.set(.digest(.any(isCertain: true)), digest) }
                var entry = try row.finished()
                if let id = object["id"]?.text { Self.move(&entry, to: id) }
                found.entries.append(entry)
                found.absorb(row)
            } catch { found.faults.append("'\(member.name)': \(error.reason)") }
        }
    }

    /// The name of a hub's repository in its Croissant.
    private static func hub(_ object: JSONReader.Object) -> String? {
        guard let url = object["contentUrl"]?.string, url.contains("://huggingface.co/datasets/") else { return nil }
        let parts = url.split(separator: "/").dropFirst(3).prefix(2)
        return parts.count == 2 ? "hf:datasets/\(parts.joined(separator: "/"))" : nil
    }
}
