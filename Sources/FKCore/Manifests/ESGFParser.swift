import FKMiddleware

/// Reads the files in a download script of ESGF's wget generator. The script is not run.
///
/// ```text
/// download_files="$(cat <<EOF--dataset.file.url.chksum_type.chksum
/// 'tas_2000.nc' 'https://host/tas_2000.nc' 'SHA256' '2cf2…'
/// EOF--dataset.file.url.chksum_type.chksum
/// )"
/// ```
struct ESGFParser: LineFormat {
    private static let mark = "EOF--dataset.file.url.chksum_type.chksum"

    private var collector: ManifestCollector
    private var isInside = false
    private var hasFound = false

    init(_ reading: Manifest.Reading) { collector = ManifestCollector(.esgf, reading) }

    /// True for the beginning of such a script.
    static func isScript(_ head: ArraySlice<UInt8>) -> Bool {
        head.starts(with: "#!".utf8) && String(decoding: head, as: UTF8.self).contains(mark)
    }

    mutating func parse(_ bytes: ArraySlice<UInt8>, _ line: Int) throws(ManifestError) {
        let text = String(decoding: bytes, as: UTF8.self).trimmingBlanks
        if text.hasSuffix("<<\(Self.mark)") || text.hasSuffix("<<'\(Self.mark)'") {
            isInside = true
            hasFound = true
            return
        }
        if text.isExactly(Self.mark) { isInside = false }
        guard isInside, !text.isEmpty else { return }
        let fields = text.split(separator: "'", omittingEmptySubsequences: false).enumerated().filter {
            $0.offset % 2 == 1
        }
        .map { String($0.element) }
        let entry: Manifest.Entry
        do throws(EntryFault) { entry = try self.entry(fields, line) } catch {
            return try collector.leaveOut(ManifestError(form: .esgf, line: line, error.reason))
        }
        try collector.add(entry)
    }

    private mutating func entry(_ fields: [String], _ line: Int) throws(EntryFault) -> Manifest.Entry {
        guard fields.count >= 2 else {
            throw EntryFault("a line of the script's files is 'NAME' 'URL' 'ALGORITHM' 'HEX'")
        }
        try EntryFields.checkURL(fields[1])
        var entry = Manifest.Entry(
            name: try EntryFields.name(fields[0]), sources: [Manifest.Source(fields[1])], line: line)
        guard fields.count >= 4, !MissingValue.isOne(fields[3]) else { return entry }
        guard let algorithm = Checksum.Algorithm(listed: fields[2]) else {
            collector.passOver("hash \(fields[2].lowercased())", line: line)
            return entry
        }
        guard let digest = SpelledDigest(fields[3], algorithm).digest else {
            throw EntryFault(Checksum.fault(in: fields[3], algorithm))
        }
        entry.digests = [digest]
        return entry
    }

    mutating func drainEntries() -> [Manifest.Entry] { collector.drainEntries() }

    mutating func finish() throws(ManifestError) -> Manifest {
        guard hasFound else { throw ManifestError(form: .esgf, "the script has no list of files of ESGF") }
        return collector.manifest
    }
}
