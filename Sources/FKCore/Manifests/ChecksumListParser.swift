import FKMiddleware

/// Reads checksum lists. `ChecksumLine` reads their lines.
///
/// Lines with different algorithms for one file become one entry. The parser accepts comments (`#`), empty lines, the lines `SIZE (NAME)
/// = BYTES` and `TIMESTAMP = …` of BSD's ports, and clear-signed lists, whose signature is stored and not verified. A list with a single
/// digest belongs to the file that the list is named after: `a.iso.sha256` to `a.iso`.
///
/// A heading such as `# BLAKE2B HASH` or `SHA256:` names the algorithm of the lines below it, and the name of the list that of all:
/// digests of BLAKE2b are as long as those of SHA-512, and those of BLAKE3 as those of SHA-256. Digests of an algorithm that is not
/// supported are counted. A file that has no other digest is a bad line.
struct ChecksumListParser: LineFormat {
    private var collector: ManifestCollector
    private let fileName: String?
    private let base: BaseURL?
    private var book = ChecksumBook()
    /// The algorithm of lines without one.
    private var heading: ChecksumLine.Heading?
    /// Files whose digests so far are not supported.
    private var lacking: [(name: String, kind: String, line: Int)] = []
    private var isEnded = false
    private var frame = Frame.none
    private var signature: [String] = []

    /// The number of entries that are handed out at once.
    private static let portion = 1_000

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
        heading = self.fileName.flatMap(Self.heading(ofFile:))
    }

    static func isSigned(_ text: ArraySlice<UInt8>) -> Bool { text.starts(with: signedStart.utf8) }

    /// True for a line of such a list, even if its digest is invalid.
    static func isLine(_ line: ArraySlice<UInt8>) -> Bool {
        var line = line
        while line.last == 0x20 || line.last == 0x09 { line = line.dropLast() }
        if isBareDigest(line) || ChecksumLine.isTimestamp(line) { return true }
        if line.last == UInt8(ascii: ":"), ChecksumLine.heading(line) != nil { return true }
        if (try? ChecksumLine(line)) != nil { return true }
        if ["DIST ", "EBUILD ", "AUX ", "MISC ", "DATA "].contains(where: { line.starts(with: $0.utf8) }),
            line.count > 40
        {
            return true
        }
        let rest = line.first == UInt8(ascii: "\\") ? line.dropFirst() : line
        let digits = rest.prefix { $0.hexValue != nil }
        if digits.count >= 32, let next = rest[digits.endIndex...].first, next == 0x20 { return true }
        // `ALGORITHM (NAME) = …`
        let word = rest.prefix { $0.isASCIILetter || $0.isASCIIDigit || $0 == UInt8(ascii: "-") }
        let bracket = rest[word.endIndex...].drop { $0 == 0x20 }
        return !word.isEmpty && bracket.first == UInt8(ascii: "(")
            && bracket.lastIndex(of: UInt8(ascii: ")")).map { bracket[$0...].contains(UInt8(ascii: "=")) } == true
    }

    mutating func parse(_ bytes: ArraySlice<UInt8>, _ line: Int) throws(ManifestError) {
        var bytes = bytes
        if try !passFrame(&bytes, line) { return }
        guard let first = bytes.first(where: { $0 != 0x20 && $0 != 0x09 }) else { return }
        if first == UInt8(ascii: "#") || bytes.last == UInt8(ascii: ":"), let found = ChecksumLine.heading(bytes) {
            heading = found
            return
        }
        if first == UInt8(ascii: "#") || ChecksumLine.isTimestamp(bytes) { return }
        if let kind = Self.otherEntry(bytes) { return collector.passOver(kind, line: line) }
        if Self.isBareDigest(bytes) { return try parseBareDigest(bytes, line) }
        let parsed: ChecksumLine
        do throws(ChecksumLine.Fault) {
            parsed = try ChecksumLine(bytes, heading: heading)
        } catch {
            let text = String(decoding: bytes.prefix(200), as: UTF8.self)
            let foreign = error.column == 0 ? ForeignList.text(bytes, line: text, fileName: nil) : nil
            return try collector.leaveOut(
                ManifestError(form: .checksums, line: line, column: error.column, foreign ?? error.reason))
        }
        try add(parsed, line)
    }

    /// The kind of a line of Gentoo's Manifest about a file of the tree.
    private static func otherEntry(_ line: ArraySlice<UInt8>) -> String? {
        // Most lines begin with a digest.
        guard let first = line.first,
            [UInt8(ascii: "E"), UInt8(ascii: "A"), UInt8(ascii: "M"), UInt8(ascii: "I"), UInt8(ascii: "n")].contains(
                first)
        else {
            return nil
        }
        // Buildroot's word for files of a version control system.
        if line.starts(with: "none ".utf8) || line.starts(with: "none\t".utf8) { return "file without a digest" }
        for type in ["EBUILD", "AUX", "MISC", "MANIFEST", "IGNORE"]
        where line.starts(with: "\(type) ".utf8) && line.split(separator: 0x20).count >= 2 {
            return "\(type) entry"
        }
        return nil
    }

    mutating func drainEntries() -> [Manifest.Entry] {
        guard isEnded else { return [] }
        var entries = book.drain(atMost: Self.portion)
        guard let base else { return entries }
        for index in entries.indices where entries[index].sources.isEmpty {
            entries[index].sources = [Manifest.Source(base.url(of: entries[index].name ?? ""))]
        }
        return entries
    }

    mutating func finish() throws(ManifestError) -> Manifest {
        guard frame == .none || frame == .after else {
            throw ManifestError(form: .checksums, "the signed list ends before its signature does: it is not whole")
        }
        for file in lacking where !book.knows(file.name) {
            try leaveOut(
                "'\(file.name)' has a digest of \(Self.shown(file.kind)) alone, which is not supported; md5, sha1, sha224, sha256, "
                    + "sha384, sha512 and blake2b are", file.line)
        }
        book.end()
        isEnded = true
        return collector.manifest
    }

    private static func shown(_ kind: String) -> String {
        switch kind {
        case "blake3": "BLAKE3 (b3sum)"
        case "blake2b": "BLAKE2 (b2sum)"
        default: kind.uppercased()
        }
    }

    private mutating func add(_ line: ChecksumLine, _ number: Int) throws(ManifestError) {
        var name: String?
        if let text = line.name {
            if text.isExactly("-") { return try leaveOut("the digest is of standard input and names no file", number) }
            if let fault = text.listedPathFault { return try leaveOut("'\(text)': \(fault)", number) }
            name = text.plainListedPath
        }
        if let url = line.url, let fault = url.urlFault { return try leaveOut(fault, number) }
        for kind in line.unsupported { collector.passOver("hash \(kind)", line: number) }
        guard !line.digests.isEmpty else {
            if let size = line.size, let name, line.unsupported.isEmpty { return book.add(size: size, of: name) }
            if let kind = line.unsupported.first, lacking.count < ManifestCollector.maxFaults {
                lacking.append((name ?? line.url ?? "", kind, number))
            }
            return
        }
        guard (name ?? line.url ?? "").utf8.count < 65_000, (line.url ?? "").utf8.count < 65_000 else {
            return try leaveOut("the URL is longer than 65,000 bytes", number)
        }
        switch book.add(line, name: name, number) {
        case .new: try collector.countOne(number)
        case .joined: break
        case .conflict(let reason): try leaveOut("'\(name ?? line.url ?? "")': \(reason)", number)
        }
    }

    private mutating func parseBareDigest(_ bytes: ArraySlice<UInt8>, _ line: Int) throws(ManifestError) {
        let text = String(decoding: bytes, as: UTF8.self).trimmingBlanks
        let suffixes = [
            ".md5", ".sha1", ".sha224", ".sha256", ".sha384", ".sha512", ".md5sum", ".sha1sum", ".sha256sum",
            ".sha512sum", ".sha384sum", ".sha224sum", ".b2", ".b2sum", ".blake2b", ".b3", ".b3sum", ".blake3",
        ]
        guard let algorithm = Checksum.Algorithm(digits: text.utf8.count), book.count == 0, let fileName,
            let suffix = suffixes.first(where: { fileName.lowercased().hasSuffix($0) }),
            fileName.utf8.count > suffix.utf8.count
        else { return try leaveOut("the digest has no file name behind it", line) }
        let name = String(fileName.dropLast(suffix.count))
        if case .unsupported(let kind) = heading {
            return try leaveOut("the digest of '\(name)' is of \(Self.shown(kind)), which is not supported", line)
        }
        var used = algorithm
        if case .algorithm(let named) = heading, named.byteCount == algorithm.byteCount { used = named }
        guard let digest = Checksum(listed: used, hex: text) else { return }
        try add(ChecksumLine(digest: digest, name: name), line)
    }

    /// The algorithm that a list's name tells: BLAKE2b for `b2sums.txt`, `B2SUMS`, `a.iso.b2` and `a.blake2b`, BLAKE3 for `B3SUMS`,
    /// `a.iso.b3` and the like; nil for any other. The last word of the name counts.
    static func heading(ofFile fileName: String) -> ChecksumLine.Heading? {
        for word in fileName.lowercased().split(whereSeparator: { !$0.isLetter && !$0.isNumber }).reversed() {
            let word = String(word)
            if word.hasPrefix("b2sum") || word == "b2" {
                return Checksum.Algorithm.hasBLAKE2 ? .algorithm(.blake2b) : .unsupported("blake2b")
            }
            if word.hasPrefix("b3sum") || word == "b3" { return .unsupported("blake3") }
            switch DigestWord.meaning(of: word) {
            case .algorithm(let algorithm): return .algorithm(algorithm)
            case .unsupported(let name): return .unsupported(name)
            default: continue
            }
        }
        return nil
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
            guard book.count == 0 else {
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

extension String {
    /// The text without leading and trailing blanks and tabs.
    package var trimmingBlanks: String {
        let isBlank: (UInt8) -> Bool = { $0 == 0x20 || $0 == 0x09 }
        guard let start = utf8.firstIndex(where: { !isBlank($0) }), let end = utf8.lastIndex(where: { !isBlank($0) })
        else { return "" }
        return String(self[start...end])
    }
}
