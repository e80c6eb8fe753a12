import FKMiddleware

/// Reads tables with a header (RFC 4180): commas, tabs or semicolons separate the fields, as the header shows.
///
/// ```text
/// url,name,size,sha256,caption
/// https://h/a.jpg,cats/a.jpg,12,2cf2…,"a ""cat"", asleep"
/// ```
///
/// `ListColumn` has the names of columns. Others are not kept. A field in quotes may have line ends, which are read as
/// LF.
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
    }

    private var collector: ManifestCollector
    private let base: BaseURL?
    private let skipsMalformed: Bool
    private var separator: UInt8 = 0
    /// The meanings of the columns; empty before the header.
    private var columns: [ListColumn?] = []
    private var place = Place.start
    private var field = Field(number: 0, line: 1, column: 1, isKept: true)
    private var fields: [Field] = []
    /// The bytes and the first line of a row.
    private var rowBytes = 0
    private var rowLine = 0

    init(_ reading: Manifest.Reading) {
        collector = ManifestCollector(.csv, reading)
        base = reading.baseURL.map(BaseURL.init)
        skipsMalformed = reading.skipsBadEntries == true
    }

    /// True for a header: it has a column of URLs.
    static func isHeader(_ line: ArraySlice<UInt8>) -> Bool {
        let separator = separator(of: line)
        return line.count < 65_536
            && line.split(separator: separator).contains { cell in
                ListColumn(String(decoding: cell.filter { $0 != quote }, as: UTF8.self)) == .url
            }
    }

    /// The separator of a header: its first tab, comma or semicolon. 0 for a header of one column, because no text contains
    /// this byte.
    private static func separator(of line: ArraySlice<UInt8>) -> UInt8 {
        line.first { $0 == 0x09 || $0 == UInt8(ascii: ",") || $0 == UInt8(ascii: ";") } ?? 0
    }

    mutating func take(_ bytes: ArraySlice<UInt8>, _ line: Int) throws(ManifestError) {
        if place == .quoted {
            rowBytes += bytes.count + 1
            guard rowBytes <= Self.maxRow else {
                throw fault("the quote has no end within \(Self.maxRow >> 20) MiB", field.line, field.column)
            }
            if field.isKept { field.bytes.append(0x0a) }
        } else {
            guard let first = bytes.first(where: { $0 != 0x20 && $0 != 0x0d }) else { return }
            if columns.isEmpty {
                if first == UInt8(ascii: "#") { return }
                separator = Self.separator(of: bytes)
            }
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

    mutating func takeEntries() -> [Manifest.Entry] { collector.takeEntries() }

    mutating func finish() throws(ManifestError) -> Manifest {
        if place == .quoted { try malformed(fault("the quote has no end", field.line, field.column)) }
        return collector.manifest
    }

    /// Reads a byte of a row. Returns false if the byte is not allowed at this place.
    private mutating func read(_ byte: UInt8, _ line: Int, _ column: Int) -> Bool {
        switch (place, byte) {
        case (.start, Self.quote): place = .quoted
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
        let isKept = columns.isEmpty || number < columns.count && columns[number] != nil
        field = Field(number: number, line: line, column: column, isKept: isKept)
        place = .start
    }

    private mutating func end() {
        if field.isKept { fields.append(field) }
        place = .start
    }

    private mutating func endRow() throws(ManifestError) {
        guard !columns.isEmpty else { return try readHeader() }
        var at = field
        let entry: Manifest.Entry
        do throws(EntryFault) {
            guard field.number + 1 == columns.count else {
                throw EntryFault(
                    "the row has \(Plural.count(field.number + 1, "field")), and the header has \(columns.count)")
            }
            var row = ListRow(rowLine, base: base)
            for field in fields {
                at = field
                guard let column = columns[field.number] else { continue }
                guard let text = String(validating: field.bytes, as: UTF8.self) else {
                    throw EntryFault("the field is not UTF-8 text")
                }
                try row.take(column, text)
            }
            at = fields.first ?? field
            entry = try row.finished()
        } catch {
            return try collector.leaveOut(fault(error.reason, at.line, at.column))
        }
        try collector.add(entry)
    }

    private mutating func readHeader() throws(ManifestError) {
        for field in fields {
            let column = ListColumn(String(decoding: field.bytes, as: UTF8.self))
            if let column, column != .url, columns.contains(column) {
                throw fault("two columns of the header have one meaning", field.line, field.column)
            }
            columns.append(column)
        }
        guard columns.contains(.url) else {
            let names = fields.prefix(10).map { "'\(String(decoding: $0.bytes.prefix(40), as: UTF8.self))'" }
            throw fault(
                "the first line is the header and has no column 'url', but \(names.joined(separator: ", ")); for a list of "
                    + "URLs alone use --format urls", field.line)
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
