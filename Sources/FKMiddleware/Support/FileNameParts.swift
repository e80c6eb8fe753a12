/// Splits and joins file names at whole characters.
package enum FileNameParts {
    /// Inserts `.n` before the extension: `a.zip` -> `a.1.zip`, `a.tar.gz` -> `a.1.tar.gz`, `README` -> `README.1`.
    ///
    /// If the result exceeds `maxBytes`, characters before the extension are dropped.
    package static func numbered(_ name: String, _ n: Int, maxBytes: Int) -> String {
        let (stem, suffix) = split(name)
        let tail = ".\(n)\(suffix)"
        return cut(stem, to: max(1, maxBytes - tail.utf8.count)) + tail
    }

    /// The stem, and the extension with its dot. `.tar.*` counts as one extension. A suffix that contains whitespace
    /// or has more than 16 characters is not an extension.
    package static func split(_ name: String) -> (stem: Substring, suffix: Substring) {
        guard let dot = name.lastIndex(of: "."), dot > name.startIndex else { return (name[...], "") }
        let suffix = name[dot...]
        guard (2...17).contains(suffix.count), suffix.utf8.count <= 64, !suffix.contains(where: \.isWhitespace) else {
            return (name[...], "")
        }
        let stem = name[..<dot]
        if stem.count > 4, stem.lowercased().hasSuffix(".tar") {
            let inner = stem.index(stem.endIndex, offsetBy: -4)
            return (name[..<inner], name[inner...])
        }
        return (stem, suffix)
    }

    /// The first character that exFAT, FAT, NTFS and SMB refuse in names; nil if there is none.
    package static func refused(in name: String, onlyASCII: Bool = false) -> Unicode.Scalar? {
        name.unicodeScalars.first { isRefused($0, onlyASCII) }
            ?? name.unicodeScalars.last.flatMap { isEnd($0) ? $0 : nil }
    }

    /// The name with `_` in place of characters that exFAT, FAT, NTFS and SMB refuse: `: ? * | < > " \` and controls, and a dot or
    /// a space at the end.
    ///
    /// - Parameter onlyASCII: true replaces all characters beyond ASCII too, which some character sets of mounts do not have.
    package static func portable(_ name: String, onlyASCII: Bool = false) -> String {
        var scalars = String.UnicodeScalarView(name.unicodeScalars.map { isRefused($0, onlyASCII) ? "_" : $0 })
        if let last = scalars.last, isEnd(last) {
            scalars.removeLast()
            scalars.append("_")
        }
        return String(scalars)
    }

    private static func isRefused(_ scalar: Unicode.Scalar, _ onlyASCII: Bool) -> Bool {
        scalar.value < 0x20 || scalar.value == 0x7f || ":?*|<>\"\\".unicodeScalars.contains(scalar)
            || onlyASCII && !scalar.isASCII
    }

    private static func isEnd(_ scalar: Unicode.Scalar) -> Bool { scalar == "." || scalar == " " }

    /// The longest prefix of whole characters that fits into `limit` bytes. If the first character is longer, the
    /// longest prefix of whole scalars.
    package static func cut(_ text: some StringProtocol, to limit: Int) -> String {
        guard text.utf8.count > limit else { return String(text) }
        var end = text.startIndex
        var bytes = 0
        for index in text.indices {
            bytes += text[index].utf8.count
            if bytes > limit { break }
            end = text.index(after: index)
        }
        if end > text.startIndex { return String(text[..<end]) }
        var result = String.UnicodeScalarView()
        bytes = 0
        for scalar in text.unicodeScalars {
            bytes += UTF8.width(scalar)
            if bytes > limit { break }
            result.append(scalar)
        }
        return String(result)
    }
}
