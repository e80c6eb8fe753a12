/// What a parser has found so far: entries, and what is wrong with those that are left out.
struct ManifestCollector: Sendable {
    var manifest: Manifest
    let reading: Manifest.Reading
    private let skips: Bool
    private var count = 0

    /// More faults than this are only counted.
    static let maxFaults = 1_000

    init(_ form: Manifest.Form, _ reading: Manifest.Reading) {
        manifest = Manifest(form: form)
        self.reading = reading
        skips = reading.skipsBadEntries(form)
    }

    /// - Throws: when there are more entries than are allowed.
    mutating func add(_ entry: Manifest.Entry) throws(ManifestError) {
        try countOne(entry.line)
        manifest.entries.append(entry)
    }

    /// Leaves an entry out.
    ///
    /// - Throws: the fault, where nothing is left out.
    mutating func leaveOut(_ fault: ManifestError) throws(ManifestError) {
        guard skips else { throw fault }
        try countOne(fault.line)
        note(fault)
    }

    /// Reports a part of an entry that is left out, such as one of several addresses.
    ///
    /// - Throws: the fault, where nothing is left out.
    mutating func leaveOutPart(_ fault: ManifestError) throws(ManifestError) {
        guard skips else { throw fault }
        note(fault)
    }

    /// Takes over what a part of the list has left out and passed over.
    mutating func take(_ part: Manifest) {
        manifest.faultCount += part.faultCount - part.faults.count
        for fault in part.faults { note(fault) }
        for (kind, count) in part.passedOver { manifest.passedOver[kind, default: 0] += count }
    }

    mutating func passOver(_ kind: String) {
        // A list must not fill the memory with kinds of its own.
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
