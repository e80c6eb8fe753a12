import FKMiddleware

/// Reads lists of URLs, with or without aria2's options.
///
/// | behind the URL | meaning |
/// | --- | --- |
/// | a tab and a URL | a mirror |
/// | `#HEX`, `#ALG=HEX` (pip, conda) | the digest |
/// | blanks or tabs, a number, and a digest (checksums of TensorFlow Datasets) | size and digest; behind another tab the name |
/// | a blank and `#` | a comment |
///
/// A line may stand in quotes, with a comma behind them. Behind a URL in quotes, a name, a size and a digest may follow, as
/// `apt-get --print-uris` writes them. Any other text behind a blank is a fault. A line `@EXPLICIT` of conda has no meaning. With a
/// base, a line without a scheme is a relative URL, for which the same holds.
///
/// ```text
/// # one URL a line; empty lines and comments are skipped
/// https://example.com/a.iso
/// https://one.example/b.iso <Tab> https://two.example/b.iso     (mirrors of one file)
///   out=b-renamed.iso                                           (indented: belongs to the line above)
///   dir=/data/images
///   checksum=sha-256=2cf2…
/// ```
struct TextListParser: LineFormat {
    private var collector: ManifestCollector
    /// The last entry, whose options may follow.
    private var entry: Manifest.Entry?
    /// True while the options of a skipped entry are read.
    private var isSkipping = false
    private var hasEntry = false
    private let base: BaseURL?
    private let isAtPage: Bool

    init(_ form: Manifest.Form, _ reading: Manifest.Reading) {
        base = reading.baseURL.map(BaseURL.init)
        isAtPage = reading.isAtPage
        collector = ManifestCollector(form, reading)
    }

    mutating func parse(_ bytes: ArraySlice<UInt8>, _ line: Int) throws(ManifestError) {
        guard let first = bytes.first(where: { $0 != 0x20 && $0 != 0x09 }), first != UInt8(ascii: "#") else { return }
        let isOption = bytes.first == 0x20 || bytes.first == 0x09
        if isOption, isSkipping { return }
        if !isOption {
            try closeEntry()
            isSkipping = false
        }
        do throws(EntryFault) {
            // ASCII is decoded in a fifth of the time.
            let isASCII = bytes.allSatisfy { $0 < 0x80 }
            let valid = isASCII ? String(decoding: bytes, as: UTF8.self) : String(validating: bytes, as: UTF8.self)
            guard let text = valid else { throw EntryFault("the line is not UTF-8 text") }
            if isOption {
                collector.manifest.form = .aria2
                try parseOption(text.trimmingBlanks)
            } else {
                try parseURLs(text, line)
            }
        } catch {
            entry = nil
            isSkipping = true
            hasEntry = true
            try collector.leaveOut(ManifestError(form: collector.manifest.form, line: line, error.reason))
        }
    }

    mutating func drainEntries() -> [Manifest.Entry] { collector.drainEntries() }

    mutating func finish() throws(ManifestError) -> Manifest {
        try closeEntry()
        return collector.manifest
    }

    private mutating func closeEntry() throws(ManifestError) {
        guard var done = entry else { return }
        entry = nil
        done.headers += Aria2Options.headers(done.options, url: done.sources[0].url)
        try collector.add(done)
    }

    private mutating func parseURLs(_ text: String, _ line: Int) throws(EntryFault) {
        // A URL alone, as nearly all lines have it.
        if text.isPlainURL, !text.utf8.contains(UInt8(ascii: "#")), !Self.hasSecond(text) {
            entry = Manifest.Entry(sources: [Manifest.Source(text)], line: line)
            hasEntry = true
            return
        }
        if !hasEntry, text.isExactly("@EXPLICIT") { return }
        var made = Manifest.Entry(line: line)
        if try parsePrinted(text, to: &made) {
            entry = made
            hasEntry = true
            return
        }
        let text = Self.withoutQuotes(text)
        var parts = text.utf8.split(separator: 0x09).map { String(Substring($0)).trimmingBlanks }.filter { !$0.isEmpty }
        guard !parts.isEmpty else { return }
        let words = parts.removeFirst().split(separator: " ").map(String.init)
        let first = words[0]
        if hasEntry, let name = Self.option(first) {
            throw EntryFault("'\(name)=' is an option of the URL above it: put a blank in front of the line")
        }
        if Self.hasSecond(first) { throw EntryFault(Self.second("comma or semicolon")) }
        let url = first.contains("://") ? first : base?.resolve(first) ?? first
        try parse(url: url, to: &made)
        for word in words.dropFirst() {
            if word.hasPrefix("#") { break }
            if try !parseFact(word, to: &made) { throw EntryFault(Self.fault(behind: first, word)) }
        }
        for part in parts {
            if part.hasPrefix("#") { break }
            if part.contains("://") {
                try parse(url: part, to: &made)
            } else if try parseFact(part, to: &made) {
                continue
            } else if made.size != nil || !made.digests.isEmpty, made.name == nil {
                made.name = try EntryFields.name(part)
            } else {
                throw EntryFault(Self.fault(behind: first, part))
            }
        }
        entry = made
        hasEntry = true
    }

    /// Parses a line of `apt-get --print-uris`: `'URL' NAME SIZE ALG:HEX`. A size of 0 without a digest is unknown. Returns false for
    /// another line.
    private mutating func parsePrinted(_ text: String, to entry: inout Manifest.Entry) throws(EntryFault) -> Bool {
        let words = text.split(separator: " ").map(String.init)
        guard 3...4 ~= words.count, words[0].utf8.count > 2, words[0].hasPrefix("'"), words[0].hasSuffix("'"),
            words[2].utf8.allSatisfy(\.isASCIIDigit)
        else { return false }
        try parse(url: String(words[0].dropFirst().dropLast()), to: &entry)
        entry.name = try EntryFields.name(words[1])
        for word in words[2...] where word != "0" || words.count == 4 {
            guard try parseFact(word, to: &entry) else { throw EntryFault(Self.fault(behind: words[0], word)) }
        }
        return true
    }

    /// A line that is a text in quotes, as ENCODE's `files.txt` and pasted JSON have it, without them.
    private static func withoutQuotes(_ line: String) -> String {
        var text = line.trimmingBlanks
        if text.hasSuffix(",") { text.removeLast() }
        guard text.utf8.count > 2, let quote = text.first, quote == "\"" || quote == "'", text.last == quote else {
            return line
        }
        let inner = text.dropFirst().dropLast()
        return inner.contains(quote) ? line : String(inner)
    }

    /// The name of an option such as `out=NAME` that has no blank in front of it; nil for another line.
    private static func option(_ word: String) -> String? {
        guard let equals = word.firstIndex(of: "=") else { return nil }
        let name = String(word[..<equals])
        return ["out", "dir", "checksum", "header"].contains(name) || Aria2Options.known.contains(name) ? name : nil
    }

    /// True if a second URL stands behind a comma or semicolon. A query may have URLs.
    private static func hasSecond(_ text: String) -> Bool {
        let path = text.utf8.prefix { $0 != UInt8(ascii: "?") && $0 != UInt8(ascii: "#") }
        var rest = path
        while let mark = rest.firstIndex(where: { $0 == UInt8(ascii: ",") || $0 == UInt8(ascii: ";") }) {
            rest = path[path.index(after: mark)...]
            if rest.starts(with: "https://".utf8) || rest.starts(with: "http://".utf8) { return true }
        }
        return false
    }

    private static func second(_ mark: String) -> String {
        "a second URL stands behind a \(mark): write one URL a line, and the mirrors of a file behind tabs"
    }

    private static func fault(behind url: String, _ word: String) -> String {
        if word.contains("://") { return second("blank") }
        return
            "'\(word.masked.prefix(60))' stands behind the URL: write the name as 'out=NAME' on an indented line "
            + "below it, and a blank of the URL as %20"
    }

    /// Parses a size or a digest. Returns false for another text.
    private mutating func parseFact(_ text: String, to entry: inout Manifest.Entry) throws(EntryFault) -> Bool {
        if entry.size == nil, !text.isEmpty, text.utf8.count < 19, text.utf8.allSatisfy(\.isASCIIDigit) {
            entry.size = Int64(text)
            return true
        }
        switch SpelledDigest(text) {
        case .digests(let all):
            for digest in all {
                guard entry.digests.add(digest) else {
                    throw EntryFault("it has two \(digest.algorithm.rawValue) digests")
                }
            }
            return true
        case .unsupported(let name):
            collector.passOver("hash \(name)", line: entry.line)
            return true
        case .none, .unknown: return false
        }
    }

    /// Parses a URL, and the digest in its fragment.
    private mutating func parse(url text: String, to entry: inout Manifest.Entry) throws(EntryFault) {
        var url = text
        if let mark = url.utf8.firstIndex(of: UInt8(ascii: "#")) {
            let fragment = url[url.utf8.index(after: mark)...]
            var digests: [Checksum] = []
            for part in fragment.split(separator: "&") {
                switch SpelledDigest(part) {
                case .digests(let all): digests += all
                case .unsupported(let name): collector.passOver("hash \(name)", line: entry.line)
                case .none, .unknown:
                    // A digest that is cut, or of another length.
                    if let sign = part.firstIndex(of: "="), let word = DigestWord.meaning(of: String(part[..<sign])),
                        case .algorithm(let algorithm) = word
                    {
                        throw EntryFault(Checksum.fault(in: part[part.index(after: sign)...], algorithm))
                    }
                }
            }
            for digest in digests {
                guard entry.digests.add(digest) else {
                    throw EntryFault("it has two \(digest.algorithm.rawValue) digests")
                }
            }
            if !digests.isEmpty { url = String(url[..<mark]) }
        }
        if let reason = url.urlFault { throw EntryFault(inList(reason, url)) }
        entry.sources.append(Manifest.Source(url))
    }

    /// The fault of a line without a scheme, which is more often a path than a URL.
    private func inList(_ reason: String, _ text: String) -> String {
        guard reason.contains("has no scheme") else {
            let scheme = text.prefix { $0 != ":" }.lowercased()
            guard ["s3", "gs", "az"].contains(scheme) else { return reason }
            if isAtPage { return "\(reason). A bucket is a source: choose \"All files of a source\"" }
            return "\(reason). A bucket is a source: fk get -r \(scheme)://… lists and fetches it"
        }
        let shown = text.masked.prefix(100).visible
        guard !isAtPage else { return "'\(shown)' is no URL: it has no scheme, such as https:// in front of a host" }
        let host = text.drop { $0 == "/" }.prefix { $0 != "/" }
        let hint =
            host.contains(".") && text.contains("/") && !host.hasPrefix(".") ? ", or https:// in front of a host" : ""
        return
            "'\(shown)' is no URL: it has no scheme. For a path below a folder of a server, give that folder with --base URL\(hint)"
    }

    private mutating func parseOption(_ text: String) throws(EntryFault) {
        guard let equals = text.utf8.firstIndex(of: UInt8(ascii: "=")) else {
            throw EntryFault("an indented line is an option 'name=value' of the URL above it")
        }
        guard hasEntry else { throw EntryFault("an option stands before the first URL") }
        let name = String(text[..<equals]).trimmingBlanks
        let value = String(text[text.utf8.index(after: equals)...]).trimmingBlanks
        switch name {
        case "out":
            guard !value.isEmpty else { throw EntryFault("out= needs a file name") }
            if let fault = FileNameRules.fault(inListed: value) {
                throw EntryFault("out=\(value.visible) cannot be the file's name: \(fault)")
            }
            entry?.name = value.plainListedPath
        case "dir":
            guard !value.isEmpty, !value.utf8.contains(0) else { throw EntryFault("dir= needs a folder") }
            entry?.directory = value
        case "checksum":
            let digest = try digest(value)
            entry?.digests = [digest]
        case "header":
            do throws(HeaderField.Invalid) {
                let field = try HeaderField.parse(value)
                entry?.headers.append(field)
            } catch {
                throw EntryFault(error.reason)
            }
        default: try parseOther(name, value)
        }
    }

    private mutating func parseOther(_ name: String, _ value: String) throws(EntryFault) {
        guard Aria2Options.known.contains(name) else {
            throw EntryFault(
                "option '\(name.visible)' is not known here; "
                    + "out, dir, checksum, header and aria2's other options are")
        }
        if let fault = Aria2Options.fault(in: name, value) { throw EntryFault(fault) }
        entry?.options.append(Manifest.Option(name, value))
        if !Aria2Options.used.contains(name), !collector.manifest.ignoredOptions.contains(name) {
            collector.manifest.ignoredOptions.append(name)
        }
    }

    private func digest(_ text: String) throws(EntryFault) -> Checksum {
        let sum: Checksum
        do throws(DownloadError) { sum = try Checksum(parsing: text) } catch { throw EntryFault(error.message) }
        guard sum.algorithm.isListed else { throw EntryFault("the checksum is none") }
        return sum
    }
}
