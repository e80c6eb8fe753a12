/// The results of a parser so far: entries, and the faults of those that are left out.
struct ManifestCollector: Sendable {
    var manifest: Manifest
    let reading: Manifest.Reading
    private let skips: Bool
    private var count = 0
    private var names = Manifest.NameBook()
    /// The bucket of the addresses `s3://BUCKET/KEY`, and the line of the first one.
    private var bucket: (name: String, line: Int)?

    /// The maximum number of stored faults. Further faults are only counted.
    static let maxFaults = 1_000

    init(_ form: Manifest.Form, _ reading: Manifest.Reading) {
        manifest = Manifest(form: form)
        self.reading = reading
        skips = reading.skipsBadEntries(form)
    }

    /// Adds an entry. An entry that says the same as an earlier one of its name is that entry; one that says something else is a
    /// fault with both lines.
    ///
    /// - Parameter column: the column of the entry; 0 for the whole line.
    /// - Returns: true if the entry was added.
    /// - Throws: an error if there are more entries than allowed; the fault, if bad entries are not skipped.
    @discardableResult mutating func add(_ entry: Manifest.Entry, column: Int = 0) throws(ManifestError) -> Bool {
        if !reading.allowsTwins, let name = entry.name {
            // A folder of the list's own is another one than that of the names.
            let path = entry.directory.map { "\u{0}\($0)/\(name)" } ?? name
            switch names.add(path, line: entry.line, content: entry.facts.contentHash) {
            case .new: break
            case .same:
                try countOne(entry.line)
                manifest.repeatedCount += 1
                return false
            case .conflict(let conflict):
                try leaveOut(
                    ManifestError(
                        form: manifest.form, line: entry.line, column: column, "'\(name)': \(conflict.reason())"))
                return false
            }
        }
        try append(entry)
        return true
    }

    /// Checks that all keys are of one bucket, whose address is the base.
    ///
    /// - Parameter name: the bucket of an entry; nil for an entry of none.
    mutating func check(bucket name: String?, line: Int) throws(EntryFault) {
        guard let name else { return }
        if let bucket, !bucket.name.isExactly(name) {
            throw EntryFault(ListRow.otherBucket(name, than: bucket.name, line: bucket.line))
        }
        bucket = bucket ?? (name, line)
    }

    /// Adds an entry whose name was compared with the others.
    ///
    /// - Throws: an error if there are more entries than allowed.
    mutating func append(_ entry: Manifest.Entry) throws(ManifestError) {
        try countOne(entry.line)
        manifest.entries.append(entry)
    }

    /// - Throws: the fault, if bad entries are not skipped.
    mutating func leaveOut(_ fault: ManifestError) throws(ManifestError) {
        guard skips else { throw fault }
        try countOne(fault.line)
        record(fault)
    }

    /// Leaves out a part of an entry, such as one of several URLs.
    ///
    /// - Throws: the fault, if bad entries are not skipped.
    mutating func leaveOutPart(_ fault: ManifestError) throws(ManifestError) {
        guard skips else { throw fault }
        record(fault)
    }

    /// Adds the faults and unsupported kinds of a part of the list.
    mutating func absorb(_ part: Manifest) {
        manifest.faultCount += part.faultCount - part.faults.count
        for fault in part.faults { record(fault) }
        for (kind, count) in part.passedOver { manifest.passedOver[kind, default: 0] += count }
        manifest.passedOverLines.merge(part.passedOverLines) { $0 < $1 ? $0 : $1 }
    }

    /// Counts what is not supported, by kind.
    ///
    /// - Parameter line: its line; 0 if it has none.
    mutating func passOver(_ kind: String, line: Int = 0) {
        // This limits the memory for a list with many different kinds.
        let kind = manifest.passedOver.count < 100 || manifest.passedOver[kind] != nil ? kind : "other"
        if manifest.passedOver[kind] == nil, line > 0 { manifest.passedOverLines[kind] = line }
        manifest.passedOver[kind, default: 0] += 1
    }

    mutating func drainEntries() -> [Manifest.Entry] {
        defer { manifest.entries = [] }
        return manifest.entries
    }

    /// True if nothing was added or left out so far.
    var isEmpty: Bool { count == 0 }

    private mutating func record(_ fault: ManifestError) {
        manifest.faultCount += 1
        if manifest.faults.count < Self.maxFaults { manifest.faults.append(fault) }
    }

    /// Counts an entry that is kept elsewhere.
    ///
    /// - Throws: an error if there are more entries than allowed.
    mutating func countOne(_ line: Int) throws(ManifestError) {
        count += 1
        guard count <= reading.maxEntries else {
            throw ManifestError(
                form: manifest.form, line: line, "the list has more than \(reading.maxEntries) entries: divide it")
        }
    }
}
