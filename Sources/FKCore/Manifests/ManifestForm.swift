import FKMiddleware

extension Manifest {
    /// The formats of lists.
    public enum Form: String, Sendable, Hashable, CaseIterable {
        /// One URL on each line; behind it the digest as a fragment, or the size and the digest.
        case urls
        /// URLs with indented options, as `aria2c -i` reads them.
        case aria2
        /// RFC 5854.
        case metalink4 = "metalink"
        /// metalinker.org, version 3.
        case metalink3
        /// Checksum lists of `sha256sum` and similar programs: GNU's format, BSD's `--tag` format, and others.
        case checksums
        /// RFC 8493: the files `bagit.txt`, `manifest-ALG.txt` and `fetch.txt`.
        case bagit
        /// The JSON export of a barrel, or an array of objects with addresses.
        case json
        /// The lock file of `fk`: one member on each line.
        case lock
        /// A table with a header and a column of URLs (RFC 4180), with commas, tabs or semicolons.
        case csv
        /// An object with a URL on each line.
        case jsonLines = "jsonl"
        /// JSON that describes files: a release, RO-Crate, Croissant, a link set, an answer of Zenodo or Dataverse and others.
        case record
        /// A page of `/api/models/OWNER/REPO/tree/REV` of a Hugging Face hub.
        case hubTree = "hf"
        /// A config file of curl with `url = …` and `output = …`.
        case curl
        /// A download script of ESGF, whose list of files is read.
        case esgf

        /// The name for messages.
        public var title: String {
            switch self {
            case .urls: "URL list"
            case .aria2: "aria2 list"
            case .metalink4: "Metalink 4"
            case .metalink3: "Metalink 3"
            case .checksums: "checksum list"
            case .bagit: "BagIt"
            case .json: "JSON list"
            case .lock: "lock file"
            case .csv: "CSV list"
            case .jsonLines: "JSON Lines"
            case .record: "record"
            case .hubTree: "hub tree"
            case .curl: "curl config"
            case .esgf: "ESGF script"
            }
        }

        /// True for forms that are parsed as a whole.
        package var isDocument: Bool {
            switch self {
            case .metalink4, .metalink3, .json, .record, .hubTree: true
            case .urls, .aria2, .checksums, .bagit, .lock, .csv, .jsonLines, .curl, .esgf: false
            }
        }

        /// The default of `Reading.skipsBadEntries`. It is false for lists of URLs and checksums, where a
        /// bad line often means a list of another form.
        package var leavesOutBadEntries: Bool {
            self != .urls && self != .aria2 && self != .checksums && self != .curl
        }

        /// Recognizes the format of a list by its content.
        ///
        /// - Parameters:
        ///   - bytes: the beginning of the list; only the first 64 KiB are used, and of JSON on one line the first MiB.
        ///   - fileName: the name of the list's file; it decides if the content is empty.
        /// - Returns: nil for any other content, such as another XML document or binary data.
        public static func recognize(_ bytes: [UInt8], fileName: String? = nil) -> Form? {
            try? Recognition.form(of: UTF16Text.plain(bytes), fileName: fileName, Reading()).get()
        }
    }
}

/// Recognizes the form of a list: a table of forms with the evidence for each, tried in order.
struct Recognition {
    /// The number of bytes used to recognize a list: 64 KiB.
    static let usedBytes = 64 << 10
    /// The number of bytes used for JSON whose first line is longer: 1 MiB.
    static let usedBytesOfLine = 1 << 20

    /// The beginning of a list.
    private struct Head {
        /// Without a byte order mark.
        let bytes: ArraySlice<UInt8>
        /// Without blanks in front.
        let text: ArraySlice<UInt8>
        /// The last part of the list's name.
        let name: String?
        /// The first line that is neither empty nor a comment.
        let line: ArraySlice<UInt8>
        /// The comment above that line, without its `#`.
        let comment: ArraySlice<UInt8>
        let rules: ListRules

        var first: UInt8? { text.first }
        /// The first line without blanks around it.
        var plainLine: String { String(decoding: line.prefix(4_096), as: UTF8.self).trimmingBlanks }
        var isBagManifest: Bool { name.flatMap(BagParser.algorithm) != nil }
    }

    /// What the evidence of a row leads to.
    private enum Verdict {
        case form(Manifest.Form)
        /// The document is no list; the reason says what it is.
        case noList(String)
    }

    /// | order | evidence | form |
    /// | --- | --- | --- |
    /// | 1 | `<`, and the root element or the words of a merge conflict | Metalink, lock file |
    /// | 2 | `[` with a hub's members; `[` | hub tree; JSON |
    /// | 3 | `{` with `fk-lock`; a first line that is an object, and a second one; `{` | lock file; JSON Lines; JSON or a record |
    /// | 4 | the first bytes of binary data | none |
    /// | 5 | `BagIt-Version:`, a frame of OpenPGP, the words of ESGF's script | BagIt, checksum list, ESGF |
    /// | 6 | the first line: of `fetch.txt`; with the names of columns, also in a comment; of curl; with a digest | BagIt, table, curl, checksum list |
    /// | 7 | an address in the first line | URL list |
    /// | 8 | the signs of other programs' lists (`ForeignList`) | none |
    /// | 9 | a text | URL list, whose first line then says what is missing |
    private static let table: [@Sendable (Head) -> Verdict?] = [
        { head in
            guard head.first == UInt8(ascii: "<") else { return nil }
            if head.text.starts(with: "<<<<<<< ".utf8) { return .form(.lock) }
            if head.text.starts(with: [0x3c, 0]) {
                return .noList("the list is in UTF-16 without a byte order mark: save it as UTF-8")
            }
            let form = MetalinkParser.form(of: Array(head.bytes))
            return form.map { .form($0) }
                ?? .noList(MetalinkParser.fault(in: Array(head.bytes)) ?? ForeignList.markup(head.text))
        },
        { head in
            guard head.first == UInt8(ascii: "[") else { return nil }
            // A table of TOML, or a section of an INI file.
            let second = head.text.dropFirst().first { $0 != 0x20 && $0 != 0x09 && $0 != 0x0a && $0 != 0x0d }
            guard second.map({ $0.isASCIILetter || $0 == UInt8(ascii: "[") }) != true else { return nil }
            return .form(HubTreeParser.isTree(head.text) ? .hubTree : .json)
        },
        { head in
            guard head.first == UInt8(ascii: "{") else { return nil }
            if LockParser.isLock(head.text) { return .form(.lock) }
            if JSONLinesParser.isFirst(in: head.text, head.rules) { return .form(.jsonLines) }
            return .form(isRecord(head.text) ? .record : .json)
        },
        { ForeignList.binary(Array($0.bytes)).map { .noList($0) } },
        { head in
            if head.bytes.starts(with: "BagIt-Version:".utf8) { return .form(.bagit) }
            if ChecksumListParser.isSigned(head.bytes) { return .form(.checksums) }
            return ESGFParser.isScript(head.bytes) ? .form(.esgf) : nil
        },
        { head in
            guard !head.line.isEmpty else { return head.isBagManifest ? .form(.bagit) : nil }
            if BagParser.isFetchLine(head.line) { return .form(.bagit) }
            if TableParser.isHeader(head.line, head.rules) || isTable(head.name, head.line) { return .form(.csv) }
            if CurlConfigParser.isLine(head.line) { return .form(.curl) }
            if ChecksumListParser.isLine(head.line) { return .form(head.isBagManifest ? .bagit : .checksums) }
            // The header is a comment. The mirrors of a list of URLs stand behind tabs as well.
            let isTable =
                TableParser.isHeader(head.comment, of: head.line)
                && (TableParser.isHeader(head.comment, head.rules) || !head.line.starts(with: "http".utf8))
            return isTable ? .form(.csv) : nil
        },
        { head in
            let line = head.plainLine
            guard line.isEmpty || line == "@EXPLICIT" || line.prefix(while: { $0 != " " && $0 != "\t" }).contains("://")
            else {
                return nil
            }
            return .form(.urls)
        },
        { head in
            ForeignList.text(head.bytes, line: head.plainLine, fileName: head.name).map { .noList($0) }
        },
        { _ in .form(.urls) },
    ]

    /// - Parameter bytes: the beginning of the list in UTF-8.
    /// - Returns: the form, or the reason why there is none.
    static func form(
        of bytes: [UInt8], fileName: String?, _ reading: Manifest.Reading
    ) -> Result<Manifest.Form, ManifestError> {
        let isLong = needsMore(bytes.prefix(usedBytes))
        let head = bytes.prefix(isLong ? usedBytesOfLine : usedBytes)
        let start = head.starts(with: [0xef, 0xbb, 0xbf]) ? 3 : 0
        let body = head[start...]
        let name = fileName.map { $0.split(separator: "/").last.map(String.init) ?? $0 }
        let (line, comment) = firstLine(body)
        let found = Head(
            bytes: body, text: body.drop { $0 == 0x20 || ($0 >= 0x09 && $0 <= 0x0d) }, name: name,
            line: line, comment: comment, rules: ListRules(reading))
        for row in table {
            switch row(found) {
            case .form(let form): return .success(form)
            case .noList(let reason): return .failure(ManifestError(form: nil, reason))
            case nil: continue
            }
        }
        return .success(.urls)
    }

    /// True for the beginning of JSON whose first line is not whole: it may be a line of JSON Lines or a document.
    static func needsMore(_ head: ArraySlice<UInt8>) -> Bool {
        head.first { $0 != 0x20 && $0 != 0x09 } == UInt8(ascii: "{") && !head.contains { $0 == 0x0a || $0 == 0x0d }
    }

    /// The first line that is neither empty nor a comment, and the last comment above it.
    private static func firstLine(_ text: ArraySlice<UInt8>) -> (line: ArraySlice<UInt8>, comment: ArraySlice<UInt8>) {
        var rest = text
        var comment: ArraySlice<UInt8> = []
        while !rest.isEmpty {
            let line = rest.prefix { $0 != 0x0a && $0 != 0x0d }
            let plain = line.drop { $0 == 0x20 || $0 == 0x09 }
            if let first = plain.first {
                guard first == UInt8(ascii: "#") else { return (line, comment) }
                comment = plain.drop { $0 == 0x20 || $0 == UInt8(ascii: "#") }
            }
            rest = rest[line.endIndex...].dropFirst()
        }
        return ([], comment)
    }

    /// True for a table by its name. A line with a URL alone is of a list of URLs.
    private static func isTable(_ name: String?, _ line: ArraySlice<UInt8>) -> Bool {
        guard let name = name?.lowercased(), name.hasSuffix(".csv") || name.hasSuffix(".tsv") else { return false }
        return !line.starts(with: "http".utf8) || line.contains { $0 == 0x09 || $0 == UInt8(ascii: ",") }
    }

    /// True if an object has an array of a record's name near its beginning. Later ones are found as the document is read.
    private static func isRecord(_ text: ArraySlice<UInt8>) -> Bool {
        var reader = JSONReader(Array(text))
        guard (try? reader.expect(UInt8(ascii: "{"))) != nil else { return false }
        repeat {
            guard let name = try? reader.memberName() else { return false }
            if name != "members", JSONFiles.listNames.contains(name), reader.peek() == UInt8(ascii: "[") { return true }
            guard (try? reader.value()) != nil else { return false }
        } while reader.skip(UInt8(ascii: ","))
        return false
    }
}
