import FKMiddleware

/// Reads JSON Lines: an object for each file, on a line of its own. `ListColumn` has the names of members; a URL may also
/// be an array of URLs. Others are ignored.
///
/// ```text
/// {"url":"https://h/a.jpg","name":"cats/a.jpg","size":12,"sha256":"2cf2…"}
/// {"key":"s3://bucket/b.jpg","size":12}                (`s5cmd --json ls`; the base is the bucket's address)
/// ```
struct JSONLinesParser: LineFormat {
    private var collector: ManifestCollector
    private let base: BaseURL?
    private let skipsMalformed: Bool

    init(_ reading: Manifest.Reading) {
        collector = ManifestCollector(.jsonLines, reading)
        base = reading.baseURL.map(BaseURL.init)
        skipsMalformed = reading.skipsBadEntries == true
    }

    /// True for a text whose first line is an object with a URL.
    static func isFirst(in text: ArraySlice<UInt8>) -> Bool {
        var reader = JSONReader(Array(text.prefix { $0 != 0x0a }))
        guard let object = try? reader.value().object, (try? reader.expectEnd()) != nil, object["members"] == nil else {
            return false
        }
        return object.members.contains { column(of: $0) == .url }
    }

    mutating func take(_ bytes: ArraySlice<UInt8>, _ line: Int) throws(ManifestError) {
        if bytes.allSatisfy({ $0 == 0x20 || $0 == 0x09 }) { return }
        let object: JSONReader.Object
        do throws(ManifestError) {
            object = try JSONReader.object(bytes, .jsonLines, line)
        } catch {
            guard skipsMalformed else { throw error }
            return try collector.leaveOut(error)
        }
        // A folder of `s5cmd --json ls`.
        if object["type"]?.string == "directory" { return }
        let entry: Manifest.Entry
        do throws(EntryFault) {
            var row = ListRow(line, base: base)
            for member in object.members where !member.value.isNull {
                guard let column = Self.column(of: member) else { continue }
                for value in column == .url ? member.value.array ?? [member.value] : [member.value] {
                    guard let text = value.text else { throw EntryFault("its '\(member.name)' is no text") }
                    try row.take(column, text)
                }
            }
            entry = try row.finished()
        } catch {
            return try collector.leaveOut(ManifestError(form: .jsonLines, line: line, error.reason))
        }
        try collector.add(entry)
    }

    mutating func takeEntries() -> [Manifest.Entry] { collector.takeEntries() }

    mutating func finish() throws(ManifestError) -> Manifest { collector.manifest }

    private static func column(of member: JSONReader.Member) -> ListColumn? {
        if let column = ListColumn(member.name) { return column }
        return member.name == "key" && member.value.string?.hasPrefix("s3://") == true ? .url : nil
    }
}
