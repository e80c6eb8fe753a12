import FKMiddleware

/// The settings for the rows of a table, the lines of JSON Lines and the objects of JSON.
struct ListRules: Sendable {
    /// The folder of relative addresses and of names without an address.
    let base: BaseURL?
    /// The columns that `--column` names.
    let columns: [Manifest.Column]
    /// The address with the names of columns in braces.
    let template: URLTemplate?

    init(_ reading: Manifest.Reading) {
        base = reading.baseURL.map(BaseURL.init)
        columns = reading.columns
        template = reading.urlTemplate.map(URLTemplate.init)
    }

    /// What a column or member means. A field that `--column` gives to one column is no other's.
    func field(of name: some StringProtocol) -> ListField? {
        let name = String(name).trimmingBlanks
        if let column = columns.first(where: { $0.name.isExactly(name) })
            ?? columns.first(where: {
                $0.name.lowercased() == name.lowercased()
            })
        {
            return column.field
        }
        guard let field = ListField(name) else { return nil }
        for column in columns {
            switch (column.field, field) {
            case (.address, .address), (.path, .path), (.path, .name), (.name, .path), (.name, .name),
                (.folder, .folder),
                (.size, .size), (.mirror, .mirror):
                return nil
            case (.digest, .digest) where column.field == field: return nil
            default: continue
            }
        }
        return template != nil && field.isAddress ? nil : field
    }
}

/// An address with the names of columns in braces: `https://host/{id}/{file}`.
struct URLTemplate: Sendable {
    private let parts: [(text: String, name: String?)]

    init(_ text: String) {
        var parts: [(String, String?)] = []
        var rest = text[...]
        while let open = rest.firstIndex(of: "{"), let close = rest[open...].firstIndex(of: "}") {
            parts.append((String(rest[..<open]), String(rest[rest.index(after: open)..<close]).trimmingBlanks))
            rest = rest[rest.index(after: close)...]
        }
        parts.append((String(rest), nil))
        self.parts = parts
    }

    /// The names in braces.
    var names: [String] { parts.compactMap(\.name) }

    /// The address with the values of a row, which are percent-encoded. Slashes stay.
    ///
    /// - Throws: `EntryFault` for a name without a value.
    func url(_ values: [String: String]) throws(EntryFault) -> String {
        var url = ""
        for part in parts {
            url += part.text
            guard let name = part.name else { continue }
            guard let value = values[name], !MissingValue.isOne(value) else {
                throw EntryFault("it has no '\(name)' for the URL's template")
            }
            url += BaseURL.encoded(value)
        }
        return url
    }
}

/// One file of a table, a line of JSON or an object. It takes the values one by one, and ignores empty ones, `NA`, `nan` and `-`.
struct ListRow {
    private let rules: ListRules
    private let line: Int
    private var addresses: [(rank: ListField.AddressRank, url: String)] = []
    private var mirrors: [Manifest.Source] = []
    private var path: (rank: Int, text: String)?
    private var name: (rank: Int, text: String)?
    private var folder: String?
    /// The name from the key of an address `s3://BUCKET/KEY`.
    private var key: String?
    private var digests: [Checksum] = []
    private var plainDigests: [String] = []
    private var algorithm: String?
    private var values: [String: String] = [:]
    var size: Int64?
    /// The bucket of its addresses `s3://BUCKET/KEY`; nil without one.
    private(set) var bucket: String?
    /// The names of digests that are there and not supported or not understood.
    private(set) var notUnderstood: [String] = []

    init(_ line: Int, _ rules: ListRules) {
        self.line = line
        self.rules = rules
    }

    /// True if a value is needed for the template.
    func needs(_ column: String) -> Bool { rules.template?.names.contains { $0.isExactly(column) } ?? false }

    /// Sets a value for the template.
    mutating func set(value: String, of column: String) { values[column] = value }

    /// - Parameter column: the name of the field in the list, for messages.
    mutating func set(_ field: ListField, _ text: String, of column: String = "") throws(EntryFault) {
        let value = text.trimmingBlanks
        // A name may consist of blanks.
        if value.isEmpty, text.isEmpty || field != .name(0) { return }
        switch field {
        case .address(let rank):
            // ESGF: `URL|TYPE|SERVICE`.
            let parts = value.split(separator: "|", omittingEmptySubsequences: false)
            if parts.count == 3, value.contains("://") {
                if parts[2] == "HTTPServer" { addresses.append((.file, String(parts[0]))) }
            } else if !MissingValue.isOne(value), !value.utf8.allSatisfy(\.isASCIIDigit) {
                // `downloads` may be a number.
                addresses.append((rank, value))
            }
        case .mirror: if !MissingValue.isOne(value) { mirrors.append(Manifest.Source(value)) }
        // A name may begin or end with blanks.
        case .path where value.contains("://"), .name(1) where value.contains("://"): addresses.append((.plain, value))
        // The number of a row.
        case .path(2) where value.utf8.allSatisfy(\.isASCIIDigit): break
        case .path(let rank): if path.map({ rank < $0.rank }) ?? true { path = (rank, text) }
        case .name(let rank): if name.map({ rank < $0.rank }) ?? true { name = (rank, text) }
        case .folder: folder = value
        case .size:
            do throws(EntryFault) { size = try Self.size(value) } catch { passOverSize() }
        case .digest(.name): algorithm = value
        case .digest(.unsupported(let name)): if !MissingValue.isOne(value) { notUnderstood.append("hash \(name)") }
        case .digest(.algorithm(let algorithm)):
            switch SpelledDigest(value, algorithm) {
            case .digests(let all): for digest in all { try add(digest) }
            case .none: break
            case .unsupported(let name): notUnderstood.append("hash \(name)")
            case .unknown: throw EntryFault(Checksum.fault(in: value, algorithm))
            }
        case .digest(.any(true)): plainDigests.append(value)
        case .digest(.long):
            guard value.utf8.count >= 64, case .digests(let all) = SpelledDigest(value) else { return }
            for digest in all { try add(digest) }
        case .digest(.any(false)):
            switch SpelledDigest(value) {
            case .digests(let all): for digest in all { try add(digest) }
            case .none: break
            case .unsupported(let name): notUnderstood.append("hash \(name)")
            // The number of a row, for example. A type in another column may explain it.
            case .unknown: plainDigests.append("?\(column)?\(value)")
            }
        }
    }

    /// Passes over a size that is none: the file goes without it.
    mutating func passOverSize() { notUnderstood.append("size that is no number of bytes") }

    /// Adds an address with its priority and country.
    mutating func add(mirror: Manifest.Source) { mirrors.append(mirror) }

    mutating func add(_ digest: Checksum) throws(EntryFault) {
        guard digests.add(digest) else { throw EntryFault("it has two \(digest.algorithm.rawValue) digests") }
    }

    /// The number of bytes; nil for an empty text, `NA` and the like, and for a size in words such as `17 kB`.
    static func size(_ text: String) throws(EntryFault) -> Int64? {
        var number = text[...]
        if MissingValue.isOne(number) { return nil }
        // pandas writes whole numbers of a column with gaps as 12.0.
        if let dot = number.firstIndex(of: "."), number[number.index(after: dot)...].allSatisfy({ $0 == "0" }) {
            number = number[..<dot]
        }
        if number.hasSuffix(" B") { number = number.dropLast(2) }
        if number.lowercased().hasSuffix(" bytes") { number = number.dropLast(6) }
        if number.contains(","), number.split(separator: ",").dropFirst().allSatisfy({ $0.utf8.count == 3 }) {
            number = number.filter { $0 != "," }[...]
        }
        if let size = Int64(number), size >= 0 { return size }
        let units = ["kb", "mb", "gb", "tb", "kib", "mib", "gib", "tib", "k", "m", "g", "t"]
        let unit = text.lowercased().drop { $0.isNumber || $0 == "." || $0 == " " || $0 == "," }
        guard text.first?.isNumber == true, units.contains(String(unit)) else {
            throw EntryFault("its size is no whole number of bytes")
        }
        return nil
    }

    /// True if it has an address, or one can be made.
    var hasAddress: Bool { !addresses.isEmpty || !mirrors.isEmpty }

    var hasName: Bool { path != nil || name != nil }
    /// True for a name that is none of something else, such as a title.
    var hasFileName: Bool { path.map { $0.rank <= 1 } ?? false || name?.rank == 0 }

    /// The file with all of its values.
    mutating func finished() throws(EntryFault) -> Manifest.Entry {
        var entry = Manifest.Entry(line: line)
        if let template = rules.template { addresses = [(.chosen, try template.url(values))] }
        try parsePlainDigests()
        let best = addresses.map(\.rank).min()
        var other: EntryFault?
        for address in addresses where address.rank == best {
            do throws(EntryFault) { try add(address.url, to: &entry) } catch { other = other ?? error }
        }
        for mirror in mirrors {
            var source = mirror
            do throws(EntryFault) {
                source.url = try url(mirror.url)
                entry.sources.append(source)
            } catch { other = other ?? error }
        }
        if let other, entry.sources.isEmpty || !Self.isOtherScheme(other) { throw other }
        if other != nil { notUnderstood.append("address of another kind") }
        entry.name = try wholeName(entry.sources.first?.url)
        if entry.sources.isEmpty {
            guard let base = rules.base, let name = entry.name else { throw EntryFault("it has no URL") }
            entry.sources = [Manifest.Source(base.url(of: name))]
        }
        entry.size = size
        entry.digests = digests
        return entry
    }

    private mutating func parsePlainDigests() throws(EntryFault) {
        let named = algorithm.flatMap { Checksum.Algorithm(member: $0) ?? Checksum.Algorithm(listed: $0) }
        let other = algorithm.flatMap(DigestWord.unsupported)
        for text in plainDigests {
            let parts = text.split(separator: "?", maxSplits: 1, omittingEmptySubsequences: true)
            let isCertain = !text.hasPrefix("?") || parts.count < 2
            let value = isCertain ? text : String(parts[1])
            if let other {
                notUnderstood.append("hash \(other)")
                continue
            }
            switch SpelledDigest(value, named) {
            case .digests(let all): for digest in all { try add(digest) }
            case .none: break
            case .unsupported(let name): notUnderstood.append("hash \(name)")
            case .unknown:
                guard isCertain else {
                    notUnderstood.append("value of '\(parts[0])' that is no digest")
                    continue
                }
                if let named { throw EntryFault(Checksum.fault(in: value, named)) }
                throw EntryFault("its 'checksum' is not ALG=HEX")
            }
        }
    }

    /// The path of the file from folder, path and name.
    private func wholeName(_ url: String?) throws(EntryFault) -> String? {
        var whole: String?
        if let folder {
            let last = name?.rank == 0 ? name?.text : nil
            let end = folder.split(separator: "/").last ?? ""
            if let last = last ?? name?.text {
                whole = Self.joined(folder, last)
            } else if end.contains("."), end != ".", end != ".." {
                whole = folder
            } else if let url {
                whole = Self.joined(folder, FileNameRules.name(url: url, head: nil))
            }
        } else if let path {
            if let name, Self.isFolder(path.text, of: name.text, isFileName: name.rank == 0) {
                whole = Self.joined(path.text, name.text)
            } else {
                whole = path.rank == 0 && path.text.hasPrefix("/") ? String(path.text.dropFirst()) : path.text
            }
        } else {
            whole = name?.text ?? key
        }
        guard let whole else { return nil }
        return try EntryFields.name(whole)
    }

    private static func joined(_ folder: String, _ name: String) -> String {
        folder.hasSuffix("/") ? folder + name : "\(folder)/\(name)"
    }

    /// True if a path is the folder of a name: it ends with a slash, or has not the extension that the name has.
    ///
    /// - Parameter isFileName: true if the name can be nothing else: then the path may have a dot, such as `v1.0`.
    private static func isFolder(_ path: String, of name: String, isFileName: Bool) -> Bool {
        if path.hasSuffix("/") { return true }
        let last = path.split(separator: "/").last ?? ""
        guard !last.isExactly(name), !name.contains("/"), let dot = name.dropFirst().lastIndex(of: ".") else {
            return false
        }
        return !last.contains(".") || isFileName && !last.lowercased().hasSuffix(name[dot...].lowercased())
    }

    private static func isOtherScheme(_ fault: EntryFault) -> Bool {
        fault.reason.contains("' is not supported; http and https")
    }

    private mutating func add(_ text: String, to entry: inout Manifest.Entry) throws(EntryFault) {
        let url = try url(text)
        if !entry.sources.contains(where: { $0.url.isExactly(url) }) { entry.sources.append(Manifest.Source(url)) }
    }

    /// A relative URL, and the key of an S3 address, are below the base.
    private mutating func url(_ text: String) throws(EntryFault) -> String {
        var url = text
        if let bucketKey = Self.key(text) {
            guard let base = rules.base else {
                throw EntryFault("'\(text)': give the bucket's https address, to which keys are added, with --base URL")
            }
            let other = String(text.dropFirst(5).prefix { $0 != "/" })
            if let bucket, !bucket.isExactly(other) { throw EntryFault(Self.otherBucket(other, than: bucket)) }
            bucket = other
            let name = try EntryFields.name(bucketKey)
            key = key ?? name
            url = base.url(of: name)
        } else if !text.contains("://"), let base = rules.base {
            url = base.resolve(text)
        }
        try EntryFields.checkURL(url)
        return url
    }

    /// The fault of an address in another bucket.
    static func otherBucket(_ other: String, than bucket: String, line: Int? = nil) -> String {
        "'s3://\(other)/' is another bucket than 's3://\(bucket)/'\(line.map { " on line \($0)" } ?? ""), and --base URL is the "
            + "address of one: make a list for each bucket"
    }

    /// The key of `s3://BUCKET/KEY`.
    private static func key(_ text: String) -> String? {
        guard text.hasPrefix("s3://") else { return nil }
        let rest = text.dropFirst(5)
        return rest.firstIndex(of: "/").map { String(rest[rest.index(after: $0)...]) } ?? ""
    }
}
