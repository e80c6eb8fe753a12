import FKMiddleware

/// Makes file names from servers and URLs safe for the disk and the terminal.
package enum FileNameRules {
    /// The maximum length of a file name in bytes. Common file systems allow 255; our own wrapping (`.`, `.<16
    /// hex>.fkpart`) adds up to 29, and 40 are reserved.
    package static let maxBytes = 255 - 40
    /// The name when no better one is known.
    package static let fallback = "download"

    private static let ownSuffixes = [".fkpart", ".fkrejected"]

    /// Makes one path component of `name`. The function is idempotent.
    ///
    /// It takes the last part after `/` or `\`, replaces control, format and direction characters by `_`, and drops
    /// whitespace and dots at both ends. It replaces a leading dot or `~` by `_`. It puts `_` before a leading `-`,
    /// before a leading combining mark, which would join the preceding slash, and before a name of our own kind
    /// (`.fkpart`). It appends `_` to device names of other systems. It cuts the name to `maxBytes` bytes, before the
    /// extension and at a character. Empty, `.` and `..` become `download`.
    package static func clean(_ name: String) -> String {
        if isPlain(name) { return name }
        let last =
            name.unicodeScalars.split(whereSeparator: { $0 == "/" || $0 == "\\" })
            .last.map { String(String.UnicodeScalarView($0)) } ?? ""
        var result = trim(replaceUnsafe(last))
        if let first = result.unicodeScalars.first, first == "." || first == "~" {
            result = "_" + String(String.UnicodeScalarView(result.unicodeScalars.drop { $0 == first }))
        }
        if result.utf8.first == UInt8(ascii: "-") || FileNameRules.joinsSlash(result) { result = "_" + result }
        if result.isEmpty { return fallback }
        result = markDevice(result)
        if isOwn(result) { result += "_" }
        return fit(result, into: maxBytes)
    }

    /// True for common names that no rule changes: ASCII letters, digits, `-`, `_` and single dots, with a stem that
    /// cannot be a device name.
    private static func isPlain(_ name: String) -> Bool {
        var stem = 0
        var isInStem = true
        var last: UInt8 = 0
        for byte in name.utf8 {
            switch byte {
            case UInt8(ascii: "0")...UInt8(ascii: "9"), UInt8(ascii: "a")...UInt8(ascii: "z"),
                UInt8(ascii: "A")...UInt8(ascii: "Z"):
                break
            case UInt8(ascii: "-"), UInt8(ascii: "_"), UInt8(ascii: "."): if last == 0 { return false }
            default: return false
            }
            if byte == UInt8(ascii: ".") { isInStem = false }
            if isInStem { stem += 1 }
            last = byte
        }
        guard last != 0, last != UInt8(ascii: "."), name.utf8.count <= maxBytes, !isOwn(name) else { return false }
        // Device names have three or four characters before the first dot, and begin with one of five letters.
        return !((3...4).contains(stem) && "cpanl".utf8.contains((name.utf8.first ?? 0) | 0x20))
    }

    /// True for a name with the ending of our unfinished files.
    ///
    /// It compares bytes: `hasSuffix` does not find a dot that forms one character with the preceding one.
    package static func isOwn(_ name: String) -> Bool {
        // Most names end with another letter.
        let last = (name.utf8.last ?? 0) | 0x20
        guard ownSuffixes.contains(where: { $0.utf8.last == last }) else { return false }
        let bytes = name.lowercased().utf8
        return ownSuffixes.contains { bytes.suffix($0.utf8.count).elementsEqual($0.utf8) }
    }

    /// The name for a URL's file: Content-Disposition's, else the last path part of the URL that the task was created
    /// with, else `download` with an extension by media type.
    ///
    /// - Parameters:
    ///   - url: the URL before redirects, because a redirect must not choose the name.
    ///   - head: nil before there is a response.
    package static func name(url: String, head: ResponseHead?) -> String {
        name(own: clean(lastPathPart(of: url)), head: head)
    }

    /// The same with the name that the URL alone gives.
    package static func name(own name: String, head: ResponseHead?) -> String {
        for value in head?.values(of: "Content-Disposition") ?? [] {
            if let name = ContentDisposition.fileName(value).map(clean), name != fallback { return name }
        }
        guard name == fallback, let type = head?.first("Content-Type"),
            let suffix = MIMETypes.fileExtension(for: type)
        else { return name }
        return "\(fallback).\(suffix)"
    }

    /// `FileNameParts.numbered` with space for our own wrapping; the name itself for 0.
    package static func numbered(_ name: String, _ n: Int) -> String {
        n == 0 ? name : FileNameParts.numbered(name, n, maxBytes: maxBytes)
    }

    /// The digest of the whole URL in lower-case hexadecimal digits, with the extension of its last path part if
    /// there is one. Two URLs never share a name, whatever their last parts are.
    package static func digestName(url: String, _ algorithm: Checksum.Algorithm) -> String {
        let last = clean(lastPathPart(of: url))
        return Digester.hex(Digester.bytes(of: url, algorithm)) + FileNameParts.split(last).suffix
    }

    /// The hidden file that receives the bytes, next to the final name; at most 255 bytes.
    package static func partName(for name: String, id: TaskID) -> String { wrapped(name, id, ".fkpart") }

    /// The part name of a task whose usual part name is taken by another owner, or whose file cannot have a mark. The work path
    /// is in front because long names are cut at their end.
    ///
    /// - Parameter workPath: eight hexadecimal digits.
    package static func partName(for name: String, id: TaskID, workPath: String) -> String {
        partName(for: "wp\(workPath)-\(name)", id: id)
    }

    /// The digits of the work path in such a name; nil for any other name.
    package static func workPath(inPartName name: String) -> String? {
        let bytes = Array(name.utf8.prefix(12))
        guard bytes.count == 12, bytes.starts(with: ".wp".utf8), bytes[11] == UInt8(ascii: "-") else { return nil }
        let digits = bytes[3..<11]
        let isHex = digits.allSatisfy { (0x30...0x39).contains($0) || (0x61...0x66).contains($0) }
        return isHex ? String(decoding: digits, as: UTF8.self) : nil
    }

    /// The name of a finished file that was rejected, kept for inspection; at most 255 bytes.
    ///
    /// - Parameter number: above 0 for further names, if the first one is taken; the default is 0.
    package static func rejectedName(for name: String, id: TaskID, number: Int = 0) -> String {
        wrapped(name, id, ".fkrejected", number)
    }

    /// The name of a file that has a name of the task but is not valid any more; at most 255 bytes.
    package static func oldName(for name: String, id: TaskID, number: Int = 0) -> String {
        wrapped(name, id, ".fkpart.old", number)
    }

    private static func wrapped(_ name: String, _ id: TaskID, _ suffix: String, _ number: Int = 0) -> String {
        let suffix = number > 0 ? ".\(number)\(suffix)" : suffix
        let limit = 254 - 1 - 16 - suffix.utf8.count
        let stem = name.utf8.count > limit ? FileNameParts.cut(name, to: limit) : name
        // Joined as bytes, because an interpolation takes ten times as long.
        return String(unsafeUninitializedCapacity: stem.utf8.count + suffix.utf8.count + 18) { text in
            var count = 0
            for part in [".", stem, ".", id.leadingDigits(16), suffix] {
                count = text[count...].update(fromContentsOf: part.utf8)
            }
            return count
        }
    }

    // MARK: Steps

    /// The last non-empty part of the URL's path, percent-decoded. Bytes that are not UTF-8 stay encoded.
    package static func lastPathPart(of url: String) -> String {
        var url = url
        return url.withUTF8 { url in
            let slash = UInt8(ascii: "/")
            var part = url[URLParts.path(of: url)]
            while part.last == slash { part.removeLast() }
            if let last = part.lastIndex(of: slash) { part = part[(last + 1)...] }
            if !part.contains(UInt8(ascii: "%")) { return String(decoding: part, as: UTF8.self) }
            return escapingInvalid(Array(part)[...].percentDecoded)
        }
    }

    /// The bytes as text. A byte that is not part of a UTF-8 sequence becomes `%XX`.
    static func escapingInvalid(_ bytes: [UInt8]) -> String {
        if let text = String(validating: bytes, as: UTF8.self) { return text }
        var result = ""
        var rest = bytes[...]
        while !rest.isEmpty {
            let length = (1...min(4, rest.count)).first { String(validating: rest.prefix($0), as: UTF8.self) != nil }
            if let length {
                result += String(decoding: rest.prefix(length), as: UTF8.self)
                rest = rest.dropFirst(length)
            } else {
                var escaped: [UInt8] = []
                escaped.appendPercentEncoded(rest.removeFirst())
                result += String(decoding: escaped, as: UTF8.self)
            }
        }
        return result
    }

    private static func replaceUnsafe(_ text: String) -> String {
        var result = String.UnicodeScalarView()
        for scalar in text.unicodeScalars {
            result.append(isUnsafe(scalar) ? "_" : scalar)
        }
        return String(result)
    }

    /// Control characters, line ends, and invisible characters that change how a name reads. Joiners stay, because
    /// emoji and several scripts need them.
    private static func isUnsafe(_ scalar: Unicode.Scalar) -> Bool {
        switch scalar.properties.generalCategory {
        case .control, .lineSeparator, .paragraphSeparator: true
        case .format: scalar != "\u{200c}" && scalar != "\u{200d}"
        default: scalar.isHidden
        }
    }

    private static func trim(_ text: String) -> String {
        var scalars = text.unicodeScalars[...]
        while let first = scalars.first, first.properties.isWhitespace { scalars.removeFirst() }
        while let last = scalars.last, last == "." || last.properties.isWhitespace { scalars.removeLast() }
        return String(scalars)
    }

    /// `con.txt` -> `con_.txt`: on Windows the name opens the console, whatever its extension.
    private static func markDevice(_ name: String) -> String {
        let base = name.unicodeScalars.firstIndex(of: ".").map { name[..<$0] } ?? name[...]
        let plain = trim(String(base)).uppercased()
        var isDevice = ["CON", "PRN", "AUX", "NUL", "CONIN$", "CONOUT$"].contains(plain)
        if plain.count == 4, plain.hasPrefix("COM") || plain.hasPrefix("LPT"), let digit = plain.last {
            isDevice = "0123456789¹²³".contains(digit)
        }
        return isDevice ? "\(base)_\(name[base.endIndex...])" : name
    }

    private static func fit(_ name: String, into limit: Int) -> String {
        guard name.utf8.count > limit else { return name }
        let (stem, suffix) = FileNameParts.split(name)
        guard !suffix.isEmpty else { return trim(FileNameParts.cut(name[...], to: limit)) }
        return FileNameParts.cut(stem, to: limit - suffix.utf8.count) + suffix
    }
}
