import FKMiddleware

/// Reads tables with a header (RFC 4180): commas, tabs, semicolons or bars separate the fields, as the header shows.
///
/// ```text
/// url,name,size,sha256,caption
/// https://h/a.jpg,cats/a.jpg,12,2cf2…,"a ""cat"", asleep"
/// ```
///
/// `ListField` has the names of columns. Others are not kept. A field in quotes may have line ends, which are read as
/// LF. Where tabs separate the fields, a quote is a letter unless the header has one. Blanks around a field are no part of it. A row
/// that repeats the header, as joined tables have it, is skipped. Comments stand in front of the header. The last of them is the header
/// itself if it has as many tabs as the first row, as in tables of NCBI and of the 1000 Genomes.
struct TableParser: LineFormat {
    /// The maximum length of a row with quotes around line ends: 1 MiB. A quote without an end would hold the list.
    static let maxRow = 1 << 20

    /// Where a byte stands in its field.
    private enum Place: Sendable { case start, plain, quoted, closed }

    /// A kept field.
    private struct Field: Sendable {
        var number: Int
        var bytes: [UInt8] = []
        var line: Int
        var column: Int
        var isKept: Bool
        var isQuoted = false

        /// The bytes, without the blanks around them if they are not in quotes.
        var value: ArraySlice<UInt8> {
            guard !isQuoted else { return bytes[...] }
            var value = bytes[...].drop { $0 == 0x20 }
            while value.last == 0x20 || value.last == 0x0d { value = value.dropLast() }
            return value
        }
    }

    private var collector: ManifestCollector
    private let rules: ListRules
    private let skipsMalformed: Bool
    private var separator: UInt8 = 0
    private var hasQuotes = true
    /// A column: its name, its meaning, and whether its values are kept.
    private struct Column: Sendable {
        var name: String
        var field: ListField?
        var isInTemplate: Bool
        var isKept: Bool { field != nil || isInTemplate }
    }

    /// The last comment in front of the header, without its `#`, and its line.
    private var comment: (bytes: [UInt8], line: Int)?
    /// The columns; empty before the header.
    private var columns: [Column] = []
    /// The first column that is kept, with which a repeated header begins.
    private var firstKept = 0
    private var place = Place.start
    private var field = Field(number: 0, line: 1, column: 1, isKept: true)
    private var fields: [Field] = []
    /// The bytes and the first line of a row.
    private var rowBytes = 0
    private var rowLine = 0

    init(_ reading: Manifest.Reading) {
        collector = ManifestCollector(.csv, reading)
        rules = ListRules(reading)
        skipsMalformed = reading.skipsBadEntries == true
    }

    /// True for a header: it has a column of URLs, or several columns that say something about files.
    static func isHeader(_ line: ArraySlice<UInt8>, _ rules: ListRules) -> Bool {
        guard line.count < 65_536 else { return false }
        // The owner says that it is a table.
        if !rules.columns.isEmpty { return true }
        let separator = separator(of: line)
        let names = line.split(separator: separator).map { cell in
            String(decoding: cell.filter { $0 != quote }, as: UTF8.self).trimmingBlanks
        }
        let fields = names.map { rules.field(of: $0) }
        if fields.contains(where: { $0?.isAddress == true }) { return true }
        if let template = rules.template, template.names.allSatisfy({ name in names.contains { $0.isExactly(name) } }) {
            return true
        }
        let known = Set(fields.compactMap(\.self))
        return separator != 0 && known.count >= 2
            && known.contains { if case .digest = $0 { true } else { $0 == .size } }
    }

    /// True for a comment that is the header of the row below it: both have the same number of tabs.
    static func isHeader(_ comment: ArraySlice<UInt8>, of row: ArraySlice<UInt8>) -> Bool {
        let tabs = comment.count { $0 == 0x09 }
        return tabs > 0 && tabs == row.count { $0 == 0x09 } && comment.count < 65_536
    }

    /// The separator of a header: its first tab, comma, semicolon or bar. 0 for a header of one column, because no text contains
    /// this byte.
    private static func separator(of line: ArraySlice<UInt8>) -> UInt8 {
        line.first { $0 == 0x09 || $0 == UInt8(ascii: ",") || $0 == UInt8(ascii: ";") || $0 == UInt8(ascii: "|") } ?? 0
    }

    mutating func parse(_ bytes: ArraySlice<UInt8>, _ line: Int) throws(ManifestError) {
        if place == .quoted {
            rowBytes += bytes.count + 1
            guard rowBytes <= Self.maxRow else {
                throw fault("the quote has no end within \(Self.maxRow >> 20) MiB", field.line, field.column)
            }
            if field.isKept { field.bytes.append(0x0a) }
        } else {
            guard let first = bytes.first(where: { $0 != 0x20 && $0 != 0x0d }) else { return }
            if columns.isEmpty {
                if first == UInt8(ascii: "#") {
                    comment = (Array(bytes.drop { $0 == 0x20 || $0 == UInt8(ascii: "#") }), line)
                    return
                }
                if let (header, place) = comment, Self.isHeader(header[...], of: bytes) {
                    comment = nil
                    (separator, hasQuotes) = (0x09, header.contains(Self.quote))
                    try row(header[...], place)
                } else {
                    separator = Self.separator(of: bytes)
                    hasQuotes = separator != 0x09 || bytes.contains(Self.quote)
                }
            }
        }
        try row(bytes, line)
    }

    /// Reads a line of a row.
    private mutating func row(_ bytes: ArraySlice<UInt8>, _ line: Int) throws(ManifestError) {
        if place != .quoted {
            rowBytes = bytes.count
            rowLine = line
            fields = []
            begin(0, line, 1)
        }
        for index in bytes.indices {
            let column = index - bytes.startIndex + 1
            guard read(bytes[index], line, column) else {
                place = .start
                return try malformed(fault("text follows the closing quote of a field", line, column))
            }
        }
        if place == .quoted { return }
        end()
        try endRow()
    }

    mutating func drainEntries() -> [Manifest.Entry] { collector.drainEntries() }

    mutating func finish() throws(ManifestError) -> Manifest {
        if place == .quoted { try malformed(fault("the quote has no end", field.line, field.column)) }
        return collector.manifest
    }

    /// Reads a byte of a row. Returns false if the byte is not allowed at this place.
    private mutating func read(_ byte: UInt8, _ line: Int, _ column: Int) -> Bool {
        switch (place, byte) {
        case (.start, Self.quote) where hasQuotes:
            place = .quoted
            field.isQuoted = true
            field.bytes = []
        // Blanks in front of a quote.
        case (.start, 0x20) where hasQuotes && separator != 0x20: if field.isKept { field.bytes.append(byte) }
        case (.quoted, Self.quote): place = .closed
        case (.quoted, _): if field.isKept { field.bytes.append(byte) }
        case (.closed, Self.quote):
            if field.isKept { field.bytes.append(byte) }
            place = .quoted
        case (_, separator):
            end()
            begin(field.number + 1, line, column + 1)
        case (.closed, _): return byte == 0x20 || byte == 0x0d
        default:
            place = .plain
            if field.isKept { field.bytes.append(byte) }
        }
        return true
    }

    private mutating func begin(_ number: Int, _ line: Int, _ column: Int) {
        let isKept = columns.isEmpty || number < columns.count && columns[number].isKept
        field = Field(number: number, line: line, column: column, isKept: isKept)
        place = .start
    }

    private mutating func end() {
        if field.isKept { fields.append(field) }
        place = .start
    }

    private mutating func endRow() throws(ManifestError) {
        guard !columns.isEmpty else { return try readHeader() }
        if isHeaderAgain { return }
        var at = field
        let entry: Manifest.Entry
        do throws(EntryFault) {
            guard field.number + 1 == columns.count else {
                throw EntryFault(
                    "the row has \((field.number + 1).plural("field")), and the header has \(columns.count)")
            }
            var row = ListRow(rowLine, rules)
            for field in fields {
                at = field
                let column = columns[field.number]
                guard let text = String(validating: field.value, as: UTF8.self) else {
                    throw EntryFault("the field is not UTF-8 text")
                }
                if column.isInTemplate { row.set(value: text, of: column.name) }
                guard let meaning = column.field else { continue }
                let value = text.trimmingBlanks
                if meaning.isName, !value.isEmpty, MissingValue.isOne(value) { continue }
                try row.set(meaning, text, of: column.name)
            }
            at = fields.first ?? field
            entry = try row.finished()
            try collector.check(bucket: row.bucket, line: rowLine)
            for kind in row.notUnderstood { collector.passOver(kind, line: rowLine) }
        } catch {
            // Names are checked when all parts of the path are known.
            if error.reason.contains("': its name "),
                let name = fields.last(where: { columns[$0.number].field?.isName == true })
            {
                at = name
            }
            return try collector.leaveOut(fault(error.reason, at.line, at.column))
        }
        try collector.add(entry)
    }

    /// True for a row whose kept fields are the names of their columns.
    private var isHeaderAgain: Bool {
        guard let first = fields.first, first.number == firstKept, field.number + 1 == columns.count else {
            return false
        }
        return fields.allSatisfy {
            String(decoding: $0.value, as: UTF8.self).trimmingBlanks.isExactly(columns[$0.number].name)
        }
    }

    private mutating func readHeader() throws(ManifestError) {
        for field in fields {
            let name = String(decoding: field.value, as: UTF8.self).trimmingBlanks
            var meaning = rules.field(of: name)
            // The length of a video or a text, unless `--column` says otherwise.
            if name.lowercased() == "length", !rules.columns.contains(where: { $0.field == .size }) { meaning = nil }
            if let meaning, Self.isSingle(meaning), columns.contains(where: { $0.field == meaning }) {
                throw fault("two columns of the header have one meaning", field.line, field.column)
            }
            let isInTemplate = rules.template?.names.contains { $0.isExactly(name) } ?? false
            columns.append(Column(name: name, field: meaning, isInTemplate: isInTemplate))
        }
        firstKept = columns.firstIndex(where: \.isKept) ?? 0
        for name in rules.template?.names ?? [] where !columns.contains(where: { $0.name.isExactly(name) }) {
            throw fault("the header has no column '\(name)' of the URL's template, but \(shownColumns)", fields[0].line)
        }
        for column in rules.columns where !columns.contains(where: { $0.field == column.field }) {
            throw fault("the header has no column '\(column.name)', but \(shownColumns)", fields[0].line)
        }
        let hasName = columns.contains { $0.field?.isName == true }
        guard
            columns.contains(where: { $0.field?.isAddress == true }) || rules.template != nil
                || rules.base != nil && hasName
        else {
            if columns.contains(where: { ["fastq_ftp", "submitted_ftp", "sra_ftp"].contains($0.name) }) {
                throw fault(
                    "the list is a file report of ENA: fk get -r ena:ACCESSION fetches its files", fields[0].line)
            }
            throw fault(
                "the first line is the header and has no column 'url', but \(shownColumns): name the column with --column url=NAME, "
                    + "or make the URLs of columns with --url-template 'https://host/{NAME}'\(hasName ? ", or of the names with --base URL" : ""); "
                    + "for a list of URLs alone use --format urls", fields[0].line)
        }
    }

    private var shownColumns: String {
        // The first line of a list of URLs may have secrets.
        fields.prefix(10).map { field in
            "'\(String(decoding: field.value, as: UTF8.self).wordsMasked.prefix(40))'"
        }.joined(separator: ", ")
    }

    /// True for a meaning that only one column may have.
    private static func isSingle(_ field: ListField) -> Bool {
        switch field {
        case .address, .mirror, .digest: false
        case .path, .name, .folder, .size: true
        }
    }

    private mutating func malformed(_ fault: ManifestError) throws(ManifestError) {
        guard skipsMalformed, !columns.isEmpty else { throw fault }
        try collector.leaveOut(fault)
    }

    private func fault(_ reason: String, _ line: Int, _ column: Int = 0) -> ManifestError {
        ManifestError(form: .csv, line: line, column: column, reason)
    }

    private static let quote = UInt8(ascii: "\"")
}
