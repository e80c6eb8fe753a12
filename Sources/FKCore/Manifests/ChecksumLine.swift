import FKMiddleware

/// One line of a checksum list.
///
/// | form | written by |
/// | --- | --- |
/// | `HEX  NAME`, `HEX *NAME` | `sha256sum` and similar programs; `*` means that the file was read as binary |
/// | `HEX URL` | lists of mirrors |
/// | `HEX SIZE NAME` | Debian's Release files; the blanks between are not exactly two |
/// | `SHA256 (NAME) = HEX` or Base64, `SIZE (NAME) = BYTES` | `sha256sum --tag`, BSD and its ports |
/// | `SHA2-256(NAME)= HEX` | `openssl dgst` |
/// | `sha256  HEX  NAME` | Buildroot |
/// | `DIST NAME SIZE ALG HEX ALG HEX …` | Gentoo's Manifest |
/// | `NAME HEX`, `NAME ALG:HEX URL`, `NAME: HEX` | pooch's registry |
///
/// A backslash before the line means that the name contains the escapes `\\`, `\n` and `\r` for a backslash, a line
/// feed and a carriage return.
struct ChecksumLine {
    /// The name; nil if the line has an address alone.
    var name: String?
    var url: String?
    var size: Int64?
    var digests: [Checksum] = []
    /// Algorithms of the line that are not supported.
    var unsupported: [String] = []

    struct Fault: Error {
        let reason: String
        /// The position in bytes, from 1; 0 for the whole line.
        let column: Int
        init(_ reason: String, column: Int = 0) {
            self.reason = reason
            self.column = column
        }
    }

    /// The algorithm that a heading or the list's name gives to lines without one.
    enum Heading: Hashable, Sendable {
        case algorithm(Checksum.Algorithm)
        case unsupported(String)
    }

    /// - Parameter heading: the algorithm that the list names; nil if the number of digits tells it.
    /// - Throws: the fault of a line in none of these forms.
    init(_ line: ArraySlice<UInt8>, heading: Heading? = nil) throws(Fault) {
        // sha256sum reads over leading blanks, and the fields of Debian's files have one.
        let unindented = line.drop(while: Self.isBlank)
        let line = Self.beginsWithDigest(unindented) ? unindented : line
        let isEscaped = line.first == UInt8(ascii: "\\")
        let rest = isEscaped ? line.dropFirst() : line
        let name: ArraySlice<UInt8>
        if Self.beginsWithDigest(rest), let found = try plain(rest, heading) {
            name = found
        } else if let found = try tagged(rest) {
            name = found
        } else if rest.starts(with: "DIST ".utf8) || rest.starts(with: "DATA ".utf8) {
            name = try parseGentoo(rest)
        } else if let found = try algorithmFirst(rest) {
            name = found
        } else if let found = try plain(rest, heading) {
            name = found
        } else if let found = try nameFirst(rest, heading) {
            name = found
        } else {
            throw Fault("the line is neither 'HEX  NAME' nor 'ALGORITHM (NAME) = HEX'")
        }
        let column = name.startIndex - line.startIndex + 1
        guard let bytes = isEscaped ? Self.unescaped(name) : Array(name) else {
            throw Fault("the name has an escape other than \\\\, \\n and \\r", column: column)
        }
        guard let text = String(validating: bytes, as: UTF8.self) else {
            throw Fault("the name is not UTF-8 text", column: column)
        }
        if text.hasPrefix("http://") || text.hasPrefix("https://") { url = text } else { self.name = text }
    }

    /// True for a line with 32 hexadecimal digits in front, as most are.
    private static func beginsWithDigest(_ line: ArraySlice<UInt8>) -> Bool {
        line.count > 32 && line.prefix(32).allSatisfy { $0.hexValue != nil }
    }

    private static func isBlank(_ byte: UInt8) -> Bool { byte == 0x20 || byte == 0x09 }

    // MARK: HEX NAME

    /// Reads `HEX  NAME`, `HEX SIZE NAME` and `HEX URL`; nil for a line without digits in front.
    private mutating func plain(_ line: ArraySlice<UInt8>, _ heading: Heading?) throws(Fault) -> ArraySlice<UInt8>? {
        let digits = line.prefix { $0.hexValue != nil }
        var rest = line[digits.endIndex...]
        guard digits.count >= 8, let next = rest.first, Self.isBlank(next) else { return nil }
        if digits.count < 32, SpelledDigest(Self.word(rest)).digest != nil { return nil }
        try parse(digits, heading)
        let blanks = rest.prefix(while: Self.isBlank)
        // With a size, the columns are lined up by other blanks than the two of `sha256sum`.
        if blanks.count != 2 || blanks.contains(0x09), let name = sized(line[blanks.endIndex...]) { return name }
        // A blank and a mark follow: ' ' for text, '*' for binary. Without a mark, the name follows directly.
        rest = rest.dropFirst()
        if rest.first == 0x20 || rest.first == UInt8(ascii: "*") { rest = rest.dropFirst() }
        guard !rest.isEmpty else { throw Fault("the name behind the digest is missing") }
        return rest
    }

    private mutating func parse(_ digits: ArraySlice<UInt8>, _ heading: Heading?) throws(Fault) {
        let text = String(decoding: digits, as: UTF8.self)
        if case .unsupported(let name) = heading { return unsupported.append(name) }
        if case .algorithm(let algorithm) = heading, algorithm.byteCount * 2 == digits.count,
            let digest = Checksum(listed: algorithm, hex: text)
        {
            return digests.append(digest)
        }
        guard let algorithm = Checksum.Algorithm(digits: digits.count),
            let digest = Checksum(listed: algorithm, hex: text)
        else {
            throw Fault(
                "\(digits.count) hexadecimal digits are the digest of no known algorithm: md5 has 32, sha-1 40, "
                    + "sha-224 56, "
                    + "sha-256 64, sha-384 96 and sha-512 128", column: 1)
        }
        digests.append(digest)
    }

    /// Reads `SIZE NAME`; nil if the text does not begin with a size.
    private mutating func sized(_ rest: ArraySlice<UInt8>) -> ArraySlice<UInt8>? {
        let number = rest.prefix(while: \.isASCIIDigit)
        guard (1...18).contains(number.count), number.count == 1 || number.first != UInt8(ascii: "0"),
            let next = rest[number.endIndex...].first, Self.isBlank(next)
        else { return nil }
        let name = rest[number.endIndex...].drop(while: Self.isBlank)
        guard !name.isEmpty else { return nil }
        size = Int64(String(decoding: number, as: UTF8.self))
        return name
    }

    // MARK: Other orders

    /// Reads the form `SHA256 (NAME) = HEX`; nil for a line in another form.
    private mutating func tagged(_ line: ArraySlice<UInt8>) throws(Fault) -> ArraySlice<UInt8>? {
        guard let open = line.firstIndex(of: UInt8(ascii: "(")), open > line.startIndex, open - line.startIndex <= 16,
            let close = line.lastIndex(of: UInt8(ascii: ")")), close > open
        else { return nil }
        var word = line[..<open]
        if word.last == 0x20 { word = word.dropLast() }
        guard !word.isEmpty,
            word.allSatisfy({
                $0.isASCIILetter || $0.isASCIIDigit || $0 == UInt8(ascii: "-") || $0 == UInt8(ascii: "/")
            })
        else { return nil }
        var rest = line[(close + 1)...].drop { $0 == 0x20 }
        guard rest.first == UInt8(ascii: "=") else { return nil }
        rest = rest.dropFirst().drop { $0 == 0x20 }
        while rest.last == 0x20 || rest.last == 0x09 { rest = rest.dropLast() }
        let name = String(decoding: word, as: UTF8.self)
        let text = String(decoding: rest, as: UTF8.self)
        guard close > open + 1 else { throw Fault("the name in brackets is missing") }
        let place = line[(open + 1)..<close]
        if name.lowercased() == "size" {
            // pkgsrc writes `Size (NAME) = 12 bytes`.
            guard let size = Int64(text.hasSuffix(" bytes") ? String(text.dropLast(6)) : text), size >= 0 else {
                throw Fault("a size is written 'SIZE (NAME) = BYTES'")
            }
            self.size = size
            return place
        }
        guard let algorithm = Checksum.Algorithm(listed: name) else {
            guard let other = DigestWord.unsupported(name) else {
                throw Fault(
                    "the algorithm \(name) is not supported; md5, sha1, sha224, sha256, sha384, sha512 and blake2b are")
            }
            unsupported.append(other)
            return place
        }
        guard let digest = SpelledDigest(text, algorithm).digest else {
            throw Fault(Checksum.fault(in: text, algorithm), column: rest.startIndex - line.startIndex + 1)
        }
        digests.append(digest)
        return place
    }

    /// Reads the form `sha256  HEX  NAME`; nil for a line in another form.
    private mutating func algorithmFirst(_ line: ArraySlice<UInt8>) throws(Fault) -> ArraySlice<UInt8>? {
        let word = Self.word(line)
        guard (2...12).contains(word.utf8.count), word.utf8.contains(where: \.isASCIILetter) else { return nil }
        let start = line.drop(while: Self.isBlank)
        let rest = start[start.prefix { !Self.isBlank($0) }.endIndex...].drop(while: Self.isBlank)
        let value = rest.prefix { !Self.isBlank($0) }
        let name = rest[value.endIndex...].drop(while: Self.isBlank)
        guard value.count >= 16, !name.isEmpty else { return nil }
        if word == "none" { return nil }
        let text = String(decoding: value, as: UTF8.self)
        if let other = DigestWord.unsupported(word), value.allSatisfy({ $0.hexValue != nil }) {
            unsupported.append(other)
            return name
        }
        guard let algorithm = Checksum.Algorithm(listed: word) else { return nil }
        guard let digest = SpelledDigest(text, algorithm).digest else {
            throw Fault(Checksum.fault(in: text, algorithm), column: value.startIndex - line.startIndex + 1)
        }
        digests.append(digest)
        return name
    }

    /// Reads a line of Gentoo's Manifest: `TYPE NAME SIZE ALG HEX ALG HEX …`.
    private mutating func parseGentoo(_ line: ArraySlice<UInt8>) throws(Fault) -> ArraySlice<UInt8> {
        let words = line.split(whereSeparator: Self.isBlank)
        guard words.count >= 5, words.count % 2 == 1, let size = Int64(String(decoding: words[2], as: UTF8.self)),
            size >= 0
        else {
            throw Fault("a line of a Manifest is 'DIST NAME SIZE ALGORITHM HEX …'")
        }
        self.size = size
        for index in stride(from: 3, to: words.count, by: 2) {
            let name = String(decoding: words[index], as: UTF8.self)
            let hex = String(decoding: words[index + 1], as: UTF8.self)
            guard let algorithm = Checksum.Algorithm(listed: name) else {
                unsupported.append(name.lowercased())
                continue
            }
            guard let digest = Checksum(listed: algorithm, hex: hex) else {
                throw Fault(
                    Checksum.fault(in: hex, algorithm), column: words[index + 1].startIndex - line.startIndex + 1)
            }
            digests.append(digest)
        }
        return words[1]
    }

    /// Reads `NAME DIGEST`, `NAME DIGEST URL` and `NAME: DIGEST`; nil for a line in another form.
    private mutating func nameFirst(_ line: ArraySlice<UInt8>, _ heading: Heading?) throws(Fault) -> ArraySlice<UInt8>?
    {
        guard let (name, digest, address) = Self.registryWords(line) else { return nil }
        var wanted: Checksum.Algorithm?
        if case .algorithm(let algorithm) = heading, algorithm.byteCount * 2 == digest.count { wanted = algorithm }
        switch SpelledDigest(String(decoding: digest, as: UTF8.self), wanted) {
        case .digests(let all): digests = all
        case .unsupported(let name): unsupported.append(name)
        case .none, .unknown: return nil
        }
        if case .unsupported(let name) = heading { (digests, unsupported) = ([], [name]) }
        if !address.isEmpty { url = String(decoding: address, as: UTF8.self) }
        return name
    }

    /// The words of a line of a registry; nil for a line in another form.
    private static func registryWords(
        _ line: ArraySlice<UInt8>
    ) -> (name: ArraySlice<UInt8>, digest: ArraySlice<UInt8>, url: ArraySlice<UInt8>)? {
        var line = line.drop(while: isBlank)
        while let last = line.last, isBlank(last) { line = line.dropLast() }
        var name: ArraySlice<UInt8>
        var rest: ArraySlice<UInt8>
        if let quote = line.first, quote == UInt8(ascii: "\"") || quote == UInt8(ascii: "'") {
            name = line.dropFirst().prefix { $0 != quote }
            rest = line[name.endIndex...].dropFirst()
        } else {
            let words = line.split(whereSeparator: isBlank)
            guard (2...3).contains(words.count) else { return nil }
            name = words[0]
            rest = line[name.endIndex...]
        }
        let words = rest.split(whereSeparator: isBlank)
        guard let digest = words.first, words.count <= 2, !name.isEmpty else { return nil }
        let url = words.count == 2 ? words[1] : []
        if !url.isEmpty, String(decoding: url, as: UTF8.self).urlFault != nil { return nil }
        if name.last == UInt8(ascii: ":"), name.count > 1 { name = name.dropLast() }
        let text = String(decoding: digest, as: UTF8.self)
        guard digest.count >= 32, !String(decoding: name, as: UTF8.self).contains("://"), isDigest(text) else {
            return nil
        }
        return (name, digest, url)
    }

    private static func isDigest(_ text: String) -> Bool {
        switch SpelledDigest(text) {
        case .digests, .unsupported: true
        case .none, .unknown: false
        }
    }

    private static func word(_ line: ArraySlice<UInt8>) -> String {
        let word = line.drop(while: isBlank).prefix { !isBlank($0) }
        return word.count > 200 ? "" : String(decoding: word, as: UTF8.self)
    }

    // MARK: Evidence

    /// The algorithm that a heading such as `# SHA512 HASH` or `SHA256:` names; nil for another line.
    static func heading(_ line: ArraySlice<UInt8>) -> Heading? {
        let isComment = line.first { !isBlank($0) } == UInt8(ascii: "#")
        guard line.count <= 100 else { return nil }
        let text = String(decoding: line, as: UTF8.self).trimmingBlanks
        guard isComment || text.hasSuffix(":") else { return nil }
        let words = text.split { " \t#:,;()".contains($0) }
        guard (1...4).contains(words.count), words.allSatisfy({ $0.utf8.count < 16 }) else { return nil }
        for word in words {
            switch DigestWord.meaning(of: String(word)) {
            case .algorithm(let algorithm): return .algorithm(algorithm)
            case .unsupported(let name): return .unsupported(name)
            default: continue
            }
        }
        return nil
    }

    /// True for a line of a distinfo that says nothing about a file.
    static func isTimestamp(_ line: ArraySlice<UInt8>) -> Bool {
        line.starts(with: "TIMESTAMP ".utf8)
            && line.dropFirst(10).allSatisfy {
                $0 == 0x20 || $0 == UInt8(ascii: "=") || $0.isASCIIDigit || "-:TZ".utf8.contains($0)
            }
    }

    private static func unescaped(_ name: ArraySlice<UInt8>) -> [UInt8]? {
        var result: [UInt8] = []
        var isEscape = false
        for byte in name {
            guard isEscape else {
                isEscape = byte == UInt8(ascii: "\\")
                if !isEscape { result.append(byte) }
                continue
            }
            isEscape = false
            switch byte {
            case UInt8(ascii: "\\"): result.append(byte)
            case UInt8(ascii: "n"): result.append(0x0a)
            case UInt8(ascii: "r"): result.append(0x0d)
            default: return nil
            }
        }
        return isEscape ? nil : result
    }
}

extension ChecksumLine {
    /// A line with a digest alone, which belongs to the file that the list is named after.
    init(digest: Checksum, name: String) {
        self.name = name
        digests = [digest]
    }
}
