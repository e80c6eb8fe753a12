import FKMiddleware

/// Reads JSON Lines: an object for each file, on a line of its own. `ListField` has the names of members; a URL may also
/// be an array of URLs. Others are ignored.
///
/// ```text
/// {"url":"https://h/a.jpg","name":"cats/a.jpg","size":12,"sha256":"2cf2…"}
/// {"key":"s3://bucket/b.jpg","size":12}                (`s5cmd --json ls`; the base is the bucket's address)
/// ```
struct JSONLinesParser: LineFormat {
    private var collector: ManifestCollector
    private let files: JSONFiles
    private let skipsMalformed: Bool

    init(_ reading: Manifest.Reading) {
        collector = ManifestCollector(.jsonLines, reading)
        files = JSONFiles(
            rules: ListRules(reading), base: reading.baseURL.map(RecordBase.init), archive: nil, isOwn: false)
        skipsMalformed = reading.skipsBadEntries == true
    }

    /// True for a text whose first line is an object with an address.
    ///
    /// - Parameter rules: the columns that the owner names.
    static func isFirst(in text: ArraySlice<UInt8>, _ rules: ListRules) -> Bool {
        var line = text.prefix { $0 != 0x0a && $0 != 0x0d }
        while line.last == 0x20 || line.last == 0x09 { line = line.dropLast() }
        let rest = text[line.endIndex...].drop { $0 == 0x20 || ($0 >= 0x09 && $0 <= 0x0d) }
        var reader = JSONReader(Array(line))
        guard let object = try? reader.value().object, (try? reader.expectEnd()) != nil, object["members"] == nil else {
            return false
        }
        if rest.first == UInt8(ascii: "{") { return true }
        guard rest.isEmpty else { return false }
        // One object alone: a file, or the description of something, whose address is a page's.
        let isDescription = object.members.contains { member in
            member.name.hasPrefix("@") || member.value.array?.contains { $0.object != nil } == true
                || JSONFiles.listNames.contains(member.name)
        }
        guard !isDescription else { return false }
        let files = JSONFiles(rules: rules, base: nil, archive: nil, isOwn: false)
        let fields = object.members.map { rules.field(of: $0.name) }
        let hasAddress = zip(object.members, fields).contains { member, field in
            field?.isAddress == true || member.value.string?.hasPrefix("s3://") == true
        }
        return files.isFile(object)
            || hasAddress
                && (fields.contains { $0?.isName == true } && object["id"] == nil
                    || zip(object.members, fields).allSatisfy {
                        $1 != nil || $0.name == "type" || $0.value.object != nil
                    })
    }

    mutating func parse(_ bytes: ArraySlice<UInt8>, _ line: Int) throws(ManifestError) {
        if bytes.allSatisfy({ $0 == 0x20 || $0 == 0x09 }) { return }
        let object: JSONReader.Object
        do throws(ManifestError) {
            object = try JSONReader.object(bytes, .jsonLines, line)
        } catch {
            guard skipsMalformed else { throw error }
            return try collector.leaveOut(error)
        }
        var found = JSONFiles.Found()
        do throws(EntryFault) {
            try files.read(object, of: "", line: line, into: &found)
            for bucket in found.buckets { try collector.check(bucket: bucket, line: line) }
        } catch {
            return try collector.leaveOut(ManifestError(form: .jsonLines, line: line, error.reason))
        }
        for kind in found.passedOver { collector.passOver(kind, line: line) }
        for fault in found.faults { try collector.leaveOut(ManifestError(form: .jsonLines, line: line, fault)) }
        for entry in found.entries { try collector.add(entry) }
    }

    mutating func drainEntries() -> [Manifest.Entry] { collector.drainEntries() }

    mutating func finish() throws(ManifestError) -> Manifest { collector.manifest }
}
