import FKMiddleware

/// Reads checksum lists. `ChecksumLine` reads their lines.
///
/// Lines with different algorithms for one file become one entry. The parser accepts comments (`#`), empty lines and
/// lines `SIZE (NAME) = BYTES` of BSD's ports. It also accepts a clear-signed list, whose signature is stored and not
/// verified. A list with a single digest belongs to the file that the list is named after: `a.iso.sha256` to `a.iso`.
///
/// Plain lines of `b2sum` look like those of `sha512sum`. Only the list's name tells them apart (`isOfBLAKE2`), and BLAKE2 is not
/// supported: such a line is bad.
struct ChecksumListParser: LineFormat {
    private var collector: ManifestCollector
    private let fileName: String?
    private let base: BaseURL?
    private var names = NameBook()
    /// The positions of entries, by name.
    private var positions = ExactMap<Int>()
    private var frame = Frame.none
    private var signature: [String] = []

    /// The reader's position in a clear-signed list (RFC 4880 section 7).
    private enum Frame {
        case none
        case header
        case text
        case signature
        case after
    }

    init(_ fileName: String?, _ reading: Manifest.Reading) {
        collector = ManifestCollector(.checksums, reading)
        self.fileName = fileName.map { $0.split(separator: "/").last.map(String.init) ?? $0 }
        base = reading.baseURL.map(BaseURL.init)
    }

    static func isSigned(_ text: ArraySlice<UInt8>) -> Bool { text.starts(with: signedStart.utf8) }

    /// True for a line of such a list, even if its digest is invalid.
    static func isLine(_ line: ArraySlice<UInt8>) -> Bool {
        var line = line
        while line.last == 0x20 || line.last == 0x09 { line = line.dropLast() }
        if isBareDigest(line) { return true }
        if (try? ChecksumLine(line)) != nil { return true }
        let rest = line.first == UInt8(ascii: "\\") ? line.dropFirst() : line
        let digits = rest.prefix { $0.hexValue != nil }
        if digits.count >= 32, let next = rest[digits.endIndex...].first, next == 0x20 { return true }
        // `ALGORITHM (NAME) = …`
        let word = rest.prefix { $0.isASCIILetter || $0.isASCIIDigit || $0 == UInt8(ascii: "-") }
        let bracket = rest[word.endIndex...].drop { $0 == 0x20 }
        return !word.isEmpty && bracket.first == UInt8(ascii: "(")
            && bracket.lastIndex(of: UInt8(ascii: ")")).map { bracket[$0...].contains(UInt8(ascii: "=")) } == true
    }

    mutating func take(_ bytes: ArraySlice<UInt8>, _ line: Int) throws(ManifestError) {
        var bytes = bytes
        if try !passFrame(&bytes, line) { return }
        guard let first = bytes.first(where: { $0 != 0x20 && $0 != 0x09 }), first != UInt8(ascii: "#") else { return }
        if first.hexValue != nil || first == UInt8(ascii: "\\"), let fileName, Self.isOfBLAKE2(fileName) {
            return try leaveOut(
                "the digests of '\(fileName)' are of BLAKE2 (b2sum) by its name, which is not supported; md5, sha1, sha224, "
                    + "sha256, sha384 and sha512 are", line)
        }
        if bytes.starts(with: "SIZE (".utf8) { return try takeSize(bytes, line) }
        if Self.isBareDigest(bytes) { return try takeBareDigest(bytes, line) }
        let parsed: ChecksumLine
        do throws(ChecksumLine.Fault) {
            parsed = try ChecksumLine(bytes)
        } catch {
            return try collector.leaveOut(
                ManifestError(form: .checksums, line: line, column: error.column, error.reason))
        }
        try add(parsed, line)
    }

    mutating func takeEntries() -> [Manifest.Entry] { [] }

    mutating func finish() throws(ManifestError) -> Manifest {
        guard frame == .none || frame == .after else {
            throw ManifestError(form: .checksums, "the signed list ends before its signature does: it is not whole")
        }
        return collector.manifest
    }

    private mutating func add(_ line: ChecksumLine, _ number: Int) throws(ManifestError) {
        if line.name.isExactly("-") { return try leaveOut("the digest is of standard input and names no file", number) }
        if let fault = ManifestName.fault(in: line.name) {
            return try leaveOut("'\(line.name)': \(fault)", number)
        }
        let name = ManifestName.plain(line.name)
        if let position = positions[name] {
            if collector.manifest.entries[position].digests.add(line.digest) { return }
            let other = collector.manifest.entries[position].line
            return try leaveOut("'\(name)': line \(other) gives the same name another digest", number)
        }
        if let fault = names.add(name, line: number) { return try leaveOut("'\(name)': \(fault)", number) }
        var entry = Manifest.Entry(name: name, line: number)
        _ = entry.digests.add(line.digest)
        if let base { entry.sources = [Manifest.Source(base.url(of: name))] }
        try collector.add(entry)
        positions[name] = collector.manifest.entries.count - 1
    }

    /// Reads a line `SIZE (NAME) = BYTES` after a digest of the same file.
    private mutating func takeSize(_ bytes: ArraySlice<UInt8>, _ line: Int) throws(ManifestError) {
        let text = String(decoding: bytes, as: UTF8.self)
        guard let close = text.range(of: ") = ", options: .backwards), let size = Int64(text[close.upperBound...]),
            size >= 0
        else { return try leaveOut("a size is written 'SIZE (NAME) = BYTES'", line) }
        let name = ManifestName.plain(String(text[..<close.lowerBound].dropFirst(6)))
        if let position = positions[name] { collector.manifest.entries[position].size = size }
    }

    private mutating func takeBareDigest(_ bytes: ArraySlice<UInt8>, _ line: Int) throws(ManifestError) {
        let text = String(decoding: bytes, as: UTF8.self).trimmingBlanks
        let suffixes = [
            ".md5", ".sha1", ".sha224", ".sha256", ".sha384", ".sha512", ".md5sum", ".sha1sum", ".sha256sum",
            ".sha512sum",
        ]
        guard let algorithm = Checksum.Algorithm(digits: text.utf8.count),
            let digest = Checksum(listed: algorithm, hex: text), collector.manifest.entries.isEmpty, let fileName,
            let suffix = suffixes.first(where: { fileName.lowercased().hasSuffix($0) }),
            fileName.utf8.count > suffix.utf8.count
        else { return try leaveOut("the digest has no file name behind it", line) }
        try add(ChecksumLine(digest: digest, name: String(fileName.dropLast(suffix.count))), line)
    }

    /// True for the name of a list of `b2sum`: `b2sums.txt`, `B2SUMS`, `a.iso.b2sum`, `a.iso.b2`, `a.blake2b`.
    static func isOfBLAKE2(_ fileName: String) -> Bool {
        let words = fileName.lowercased().split { !$0.isLetter && !$0.isNumber }
        if words.contains(where: { $0.hasPrefix("sha") || $0.hasPrefix("md5") }) { return false }
        return words.last == "b2" || words.contains { $0.hasPrefix("b2sum") || $0.hasPrefix("blake2") }
    }

    private static func isBareDigest(_ line: ArraySlice<UInt8>) -> Bool {
        let digits = line.prefix { $0.hexValue != nil }
        // With three or more blanks, the name itself consists of blanks.
        let rest = line[digits.endIndex...]
        return Checksum.Algorithm(digits: digits.count) != nil && rest.count < 3
            && rest.allSatisfy { $0 == 0x20 || $0 == 0x09 }
    }

    private mutating func leaveOut(_ reason: String, _ line: Int) throws(ManifestError) {
        try collector.leaveOut(ManifestError(form: .checksums, line: line, reason))
    }

    // MARK: Signed lists

    private static let signedStart = "-----BEGIN PGP SIGNED MESSAGE-----"

    /// Reads a line of the signature's frame. Returns true for a line of the list itself.
    private mutating func passFrame(_ bytes: inout ArraySlice<UInt8>, _ line: Int) throws(ManifestError) -> Bool {
        switch frame {
        case .none:
            guard Self.isSigned(bytes) else { return true }
            frame = .header
            // Text outside of the frame is not signed.
            guard collector.manifest.entries.isEmpty else {
                throw ManifestError(
                    form: .checksums, line: line, "a signed list begins behind other lines: divide the file")
            }
            return false
        case .header:
            if bytes.allSatisfy({ $0 == 0x20 || $0 == 0x09 }) { frame = .text }
            return false
        case .text:
            if bytes.starts(with: "-----BEGIN PGP SIGNATURE-----".utf8) {
                frame = .signature
                signature = [String(decoding: bytes, as: UTF8.self)]
                return false
            }
            if bytes.starts(with: "- ".utf8) { bytes = bytes.dropFirst(2) }
            return true
        case .signature:
            signature.append(String(decoding: bytes, as: UTF8.self))
            guard signature.count < 1_000 else {
                throw ManifestError(form: .checksums, line: line, "the signature of the list has no end")
            }
            guard bytes.starts(with: "-----END PGP SIGNATURE-----".utf8) else { return false }
            frame = .after
            let text = signature.joined(separator: "\n") + "\n"
            collector.manifest.facts.signature = .init(mediaType: "application/pgp-signature", text: text)
            return false
        case .after:
            guard bytes.allSatisfy({ $0 == 0x20 || $0 == 0x09 }) else {
                throw ManifestError(form: .checksums, line: line, "lines stand behind the signature: divide the file")
            }
            return false
        }
    }
}

extension ChecksumLine {
    fileprivate init(digest: Checksum, name: String) {
        self.digest = digest
        self.name = name
    }
}

extension String {
    /// The text without leading and trailing blanks and tabs.
    package var trimmingBlanks: String {
        let isBlank: (UInt8) -> Bool = { $0 == 0x20 || $0 == 0x09 }
        guard let start = utf8.firstIndex(where: { !isBlank($0) }), let end = utf8.lastIndex(where: { !isBlank($0) })
        else { return "" }
        return String(self[start...end])
    }
}
