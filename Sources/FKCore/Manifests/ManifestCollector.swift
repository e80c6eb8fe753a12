/// The results of a parser so far: entries, and the faults of those that are left out.
struct ManifestCollector: Sendable {
    var manifest: Manifest
    let reading: Manifest.Reading
    private let skips: Bool
    private var count = 0

    /// The maximum number of stored faults. Further faults are only counted.
    static let maxFaults = 1_000

    init(_ form: Manifest.Form, _ reading: Manifest.Reading) {
        manifest = Manifest(form: form)
        self.reading = reading
        skips = reading.skipsBadEntries(form)
    }

    /// Adds an entry.
    ///
    /// - Throws: an error if there are more entries than allowed.
    mutating func add(_ entry: Manifest.Entry) throws(ManifestError) {
        try countOne(entry.line)
        manifest.entries.append(entry)
    }

    /// Leaves an entry out.
    ///
    /// - Throws: the fault, if bad entries are not skipped.
    mutating func leaveOut(_ fault: ManifestError) throws(ManifestError) {
        guard skips else { throw fault }
        try countOne(fault.line)
        note(fault)
    }

    /// Leaves out a part of an entry, such as one of several URLs.
    ///
    /// - Throws: the fault, if bad entries are not skipped.
    mutating func leaveOutPart(_ fault: ManifestError) throws(ManifestError) {
        guard skips else { throw fault }
        note(fault)
    }

    /// Adds the faults and unsupported kinds of a part of the list.
    mutating func take(_ part: Manifest) {
        manifest.faultCount += part.faultCount - part.faults.count
        for fault in part.faults { note(fault) }
        for (kind, count) in part.passedOver { manifest.passedOver[kind, default: 0] += count }
    }

    mutating func passOver(_ kind: String) {
        // This limits the memory for a list with many different kinds.
        let kind = manifest.passedOver.count < 100 || manifest.passedOver[kind] != nil ? kind : "other"
        manifest.passedOver[kind, default: 0] += 1
    }

    mutating func takeEntries() -> [Manifest.Entry] {
        defer { manifest.entries = [] }
        return manifest.entries
    }

    private mutating func note(_ fault: ManifestError) {
        manifest.faultCount += 1
        if manifest.faults.count < Self.maxFaults { manifest.faults.append(fault) }
    }

    private mutating func countOne(_ line: Int) throws(ManifestError) {
        count += 1
        guard count <= reading.maxEntries else {
            throw ManifestError(
                form: manifest.form, line: line, "the list has more than \(reading.maxEntries) entries: divide it")
        }
    }
}
