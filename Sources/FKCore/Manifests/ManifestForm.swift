extension Manifest {
    /// The formats of lists.
    public enum Form: String, Sendable, Hashable, CaseIterable {
        /// One URL on each line.
        case urls
        /// URLs with indented options, as `aria2c -i` reads them.
        case aria2
        /// RFC 5854.
        case metalink4 = "metalink"
        /// metalinker.org, version 3.
        case metalink3
        /// Checksum lists of `sha256sum` and similar programs: GNU's format, and BSD's `--tag` format.
        case checksums
        /// RFC 8493: the files `bagit.txt`, `manifest-ALG.txt` and `fetch.txt`.
        case bagit
        /// The JSON export of a barrel.
        case json
        /// The lock file of `fk`: one member on each line.
        case lock
        /// A table with a header and a column of URLs (RFC 4180), with commas, tabs or semicolons.
        case csv
        /// An object with a URL on each line.
        case jsonLines = "jsonl"
        /// JSON that describes a record's files: RO-Crate, Croissant, a link set, or an answer of Zenodo or Dataverse.
        case record
        /// A page of `/api/models/OWNER/REPO/tree/REV` of a Hugging Face hub.
        case hubTree = "hf"

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
            }
        }

        /// True for forms that are parsed as a whole.
        package var isDocument: Bool {
            switch self {
            case .metalink4, .metalink3, .json, .record, .hubTree: true
            case .urls, .aria2, .checksums, .bagit, .lock, .csv, .jsonLines: false
            }
        }

        /// The default of `Reading.skipsBadEntries`. It is false for lists of URLs and checksums, where a
        /// bad line often means a list of another form.
        package var leavesOutBadEntries: Bool { self != .urls && self != .aria2 && self != .checksums }

        /// The number of bytes used to recognize a list: 64 KiB.
        static let recognizedBytes = 64 << 10

        /// Recognizes the format of a list by its content.
        ///
        /// - Parameters:
        ///   - bytes: the beginning of the list; only the first 64 KiB are used.
        ///   - fileName: the name of the list's file; it decides if the content is empty.
        /// - Returns: nil for any other content, such as another XML document or binary data.
        public static func recognize(_ bytes: [UInt8], fileName: String? = nil) -> Form? {
            let head = Array(bytes.prefix(recognizedBytes))
            let start = head.starts(with: [0xef, 0xbb, 0xbf]) ? 3 : 0
            let text = head[start...].drop { $0 == 0x20 || ($0 >= 0x09 && $0 <= 0x0d) }
            switch text.first {
            case UInt8(ascii: "<"):
                return conflict(text) ? .lock : MetalinkParser.form(of: head)
            case UInt8(ascii: "["): return HubTreeParser.isTree(text) ? .hubTree : .json
            case UInt8(ascii: "{"):
                if LockParser.isLock(text) { return .lock }
                return JSONLinesParser.isFirst(in: text) ? .jsonLines : RecordShape.isRecord(text) ? .record : .json
            default: break
            }
            guard !isBinary(head) else { return nil }
            return lines(head[start...], fileName)
        }

        /// The form of the first line that is neither empty nor a comment.
        private static func lines(_ text: ArraySlice<UInt8>, _ fileName: String?) -> Form? {
            if text.starts(with: "BagIt-Version:".utf8) { return .bagit }
            if ChecksumListParser.isSigned(text) { return .checksums }
            let name = fileName.map { $0.split(separator: "/").last.map(String.init) ?? $0 }
            for line in text.split(whereSeparator: { $0 == 0x0a || $0 == 0x0d }) {
                guard let first = line.first(where: { $0 != 0x20 && $0 != 0x09 }), first != UInt8(ascii: "#") else {
                    continue
                }
                if BagParser.isFetchLine(line) { return .bagit }
                if TableParser.isHeader(line) || isTable(name, line) { return .csv }
                guard ChecksumListParser.isLine(line) else { return .urls }
                return name.flatMap(BagParser.algorithm) != nil ? .bagit : .checksums
            }
            return name.flatMap(BagParser.algorithm) != nil ? .bagit : .urls
        }

        /// True for a table by its name. A line with a URL alone is of a list of URLs.
        private static func isTable(_ name: String?, _ line: ArraySlice<UInt8>) -> Bool {
            guard let name = name?.lowercased(), name.hasSuffix(".csv") || name.hasSuffix(".tsv") else { return false }
            return !line.starts(with: "http".utf8) || line.contains { $0 == 0x09 || $0 == UInt8(ascii: ",") }
        }

        private static func conflict(_ text: ArraySlice<UInt8>) -> Bool { text.starts(with: "<<<<<<< ".utf8) }

        /// True for gzip data, Parquet and data with zero bytes, which no text contains.
        private static func isBinary(_ head: [UInt8]) -> Bool {
            head.starts(with: [0x1f, 0x8b]) || head.starts(with: "PAR1".utf8) || head.contains(0)
        }

        static func fault(in bytes: [UInt8]) -> String {
            if bytes.starts(with: [0x1f, 0x8b]) { return "the list is compressed with gzip: unpack it first" }
            if bytes.starts(with: "PAR1".utf8) {
                return "the list is a Parquet file, which is not read: convert it, for example with "
                    + "duckdb -c \"COPY (FROM 'list.parquet') TO 'list.csv'\""
            }
            if bytes.starts(with: [0xff, 0xfe]) || bytes.starts(with: [0xfe, 0xff]) || bytes.starts(with: [0x3c, 0]) {
                return "the list is in UTF-16: save it as UTF-8"
            }
            if bytes.first == UInt8(ascii: "<") || bytes.dropFirst(3).first == UInt8(ascii: "<") {
                return "the document is no Metalink: its root element is another one"
            }
            return "the form of the list is not recognised: it is no text, Metalink or JSON"
        }
    }
}
