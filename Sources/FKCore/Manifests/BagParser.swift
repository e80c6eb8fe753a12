import FKMiddleware

/// Reads the files of a bag (RFC 8493) one at a time; `Manifest.bag` puts them together.
///
/// | file | values for an entry |
/// | --- | --- |
/// | `manifest-ALG.txt` | name and digest |
/// | `fetch.txt` | name, address and size |
/// | `bagit.txt` | none: version and encoding are checked |
struct BagParser: LineFormat {
    private enum File {
        case declaration
        case manifest(Checksum.Algorithm)
        /// A manifest of an unknown algorithm.
        case unknown(String)
        case fetch
    }

    private var collector: ManifestCollector
    private let fileName: String?
    private var file: File?
    private var names = Manifest.NameBook()
    private var positions = ExactText.Map<Int>()
    /// True since version 1.0, where a percent sign is encoded as well (section 2.1.3). In earlier versions it is
    /// literal.
    private let encodesPercent: Bool
    private(set) var version: String?

    init(_ fileName: String?, encodesPercent: Bool = true, _ reading: Manifest.Reading) {
        collector = ManifestCollector(.bagit, reading)
        self.encodesPercent = encodesPercent
        let name = fileName.map { $0.split(separator: "/").last.map(String.init) ?? $0 }
        self.fileName = name
        guard let name else { return }
        if name == "bagit.txt" { file = .declaration }
        if name == "fetch.txt" { file = .fetch }
        if let word = Self.algorithm(name) {
            file = Checksum.Algorithm(listed: word).map { .manifest($0) } ?? .unknown(word)
        }
    }

    /// The algorithm of a manifest's name: `sha256` for `manifest-sha256.txt`; nil for another name.
    static func algorithm(_ name: String) -> String? {
        guard name.hasPrefix("manifest-"), name.hasSuffix(".txt"), name.utf8.count > 13 else { return nil }
        return String(name.dropFirst(9).dropLast(4))
    }

    /// True for a line of the form `URL LENGTH data/NAME`.
    static func isFetchLine(_ line: ArraySlice<UInt8>) -> Bool {
        guard let parts = words(line) else { return false }
        return String(decoding: parts.0, as: UTF8.self).urlFault == nil
            && (parts.1.elementsEqual("-".utf8) || parts.1.allSatisfy(\.isASCIIDigit))
            && parts.2.starts(with: "data/".utf8)
    }

    mutating func parse(_ bytes: ArraySlice<UInt8>, _ line: Int) throws(ManifestError) {
        guard let first = bytes.first(where: { $0 != 0x20 && $0 != 0x09 }) else { return }
        if file == nil { try guess(bytes, line) }
        if case .declaration = file { return try parseDeclaration(bytes, line) }
        if first == UInt8(ascii: "#") { return }
        do throws(EntryFault) {
            switch file {
            case .fetch: try register(fetchEntry(bytes, line))
            case .manifest(let algorithm): try parseManifest(bytes, line, algorithm)
            case .unknown(let word): collector.passOver("hash \(word)")
            case .declaration, nil: break
            }
        } catch {
            return try collector.leaveOut(fault(line, error.reason))
        }
    }

    mutating func drainEntries() -> [Manifest.Entry] { [] }

    mutating func finish() throws(ManifestError) -> Manifest {
        if case .declaration = file, version == nil {
            throw ManifestError(form: .bagit, file: fileName, "bagit.txt has no line 'BagIt-Version: 1.0'")
        }
        guard collector.manifest.entries.count <= collector.reading.maxEntries else {
            throw ManifestError(
                form: .bagit, file: fileName,
                "the list has more than \(collector.reading.maxEntries) entries: divide it")
        }
        return collector.manifest
    }

    private func fault(_ line: Int, _ reason: String) -> ManifestError {
        ManifestError(form: .bagit, file: fileName, line: line, reason)
    }

    /// Detects the kind of a file without a name by its first line.
    private mutating func guess(_ bytes: ArraySlice<UInt8>, _ line: Int) throws(ManifestError) {
        if bytes.starts(with: "BagIt-Version:".utf8) {
            file = .declaration
        } else if Self.isFetchLine(bytes) {
            file = .fetch
        } else if let algorithm = Checksum.Algorithm(digits: bytes.prefix { $0.hexValue != nil }.count) {
            file = .manifest(algorithm)
        } else {
            throw fault(line, "the line is of none of a bag's files: bagit.txt, manifest-ALG.txt and fetch.txt")
        }
    }

    private mutating func parseDeclaration(_ bytes: ArraySlice<UInt8>, _ line: Int) throws(ManifestError) {
        let text = String(decoding: bytes, as: UTF8.self)
        let parts = text.split(separator: ":", maxSplits: 1).map { String($0).trimmingBlanks }
        guard parts.count == 2 else { throw fault(line, "bagit.txt has lines 'NAME: VALUE' only") }
        switch parts[0] {
        case "BagIt-Version":
            let numbers = parts[1].split(separator: ".")
            guard numbers.count == 2, let major = Int(numbers[0]), Int(numbers[1]) != nil else {
                throw fault(line, "the version '\(parts[1])' is none")
            }
            guard major <= 1 else {
                throw fault(line, "the bag is of version \(parts[1]), and bags up to 1.0 are read: use a later program")
            }
            version = parts[1]
        case "Tag-File-Character-Encoding":
            guard ["utf-8", "utf8", "us-ascii", "ascii"].contains(parts[1].lowercased()) else {
                throw fault(line, "the bag's tag files are in \(parts[1]), and only UTF-8 is read: convert them")
            }
        default: break
        }
    }

    /// Reads a line `HEX NAME` with blanks or tabs between them.
    private mutating func parseManifest(
        _ bytes: ArraySlice<UInt8>, _ line: Int, _ algorithm: Checksum.Algorithm
    ) throws(EntryFault) {
        let digits = bytes.prefix { $0 != 0x20 && $0 != 0x09 }
        var rest = bytes[digits.endIndex...].drop { $0 == 0x20 || $0 == 0x09 }
        // md5sum writes `*` for a file that it has read as binary. Names in a bag begin with `data/`.
        if rest.first == UInt8(ascii: "*") { rest = rest.dropFirst() }
        let hex = String(decoding: digits, as: UTF8.self)
        guard let digest = Checksum(listed: algorithm, hex: hex) else {
            throw EntryFault(Checksum.fault(in: hex, algorithm))
        }
        var entry = Manifest.Entry(name: try name(rest), line: line)
        entry.digests = [digest]
        try register(entry)
    }

    private func fetchEntry(_ bytes: ArraySlice<UInt8>, _ line: Int) throws(EntryFault) -> Manifest.Entry {
        guard let parts = Self.words(bytes) else { throw EntryFault("a line of fetch.txt is 'URL LENGTH NAME'") }
        guard let url = String(validating: parts.0, as: UTF8.self) else {
            throw EntryFault("the URL is not UTF-8 text")
        }
        let scheme = url.prefix { $0 != ":" }.lowercased()
        if let fault = url.urlFault {
            throw EntryFault(scheme == "ftp" ? "'\(url)': ftp is not supported; http and https are" : fault)
        }
        var entry = Manifest.Entry(name: try name(parts.2), sources: [Manifest.Source(url)], line: line)
        if !parts.1.elementsEqual("-".utf8) {
            guard let size = Int64(String(decoding: parts.1, as: UTF8.self)), size >= 0 else {
                throw EntryFault("the length of '\(entry.name ?? "")' is neither a number of bytes nor '-'")
            }
            entry.size = size
        }
        return entry
    }

    private mutating func register(_ entry: Manifest.Entry) throws(EntryFault) {
        let name = entry.name ?? ""
        switch names.add(name, line: entry.line, content: entry.facts.contentHash) {
        case .new: collector.manifest.entries.append(entry)
        // The same line again.
        case .same: break
        case .conflict(let conflict): throw EntryFault("'\(name)': \(conflict.reason())")
        }
    }

    /// The name of a file of the payload, decoded and checked.
    private func name(_ bytes: ArraySlice<UInt8>) throws(EntryFault) -> String {
        guard let text = String(validating: decoded(bytes), as: UTF8.self) else {
            throw EntryFault("the name is not UTF-8 text")
        }
        let name = try EntryFields.name(text)
        guard name.utf8.starts(with: "data/".utf8) else { throw EntryFault("'\(name)': a bag's files are below data/") }
        return name
    }

    /// Decodes `%0D`, `%0A` and `%25` to CR, LF and the percent sign. No other byte is encoded.
    private func decoded(_ bytes: ArraySlice<UInt8>) -> [UInt8] {
        guard bytes.contains(UInt8(ascii: "%")) else { return Array(bytes) }
        var result: [UInt8] = []
        var index = bytes.startIndex
        while index < bytes.endIndex {
            let byte = bytes.percentValue(at: index)
            if let byte, byte == 0x0d || byte == 0x0a || (byte == UInt8(ascii: "%") && encodesPercent) {
                result.append(byte)
                index += 3
            } else {
                result.append(bytes[index])
                index += 1
            }
        }
        return result
    }

    /// Divides a line into two words and the rest.
    private static func words(
        _ line: ArraySlice<UInt8>
    ) -> (ArraySlice<UInt8>, ArraySlice<UInt8>, ArraySlice<UInt8>)? {
        let isBlank: (UInt8) -> Bool = { $0 == 0x20 || $0 == 0x09 }
        let first = line.drop(while: isBlank).prefix { !isBlank($0) }
        let second = line[first.endIndex...].drop(while: isBlank).prefix { !isBlank($0) }
        let rest = line[second.endIndex...].drop(while: isBlank)
        return first.isEmpty || second.isEmpty || rest.isEmpty ? nil : (first, second, rest)
    }
}
