import FKMiddleware

/// Reads lists of URLs, with or without aria2's options.
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

    init(_ form: Manifest.Form, _ reading: Manifest.Reading) {
        collector = ManifestCollector(form, reading)
    }

    mutating func take(_ bytes: ArraySlice<UInt8>, _ line: Int) throws(ManifestError) {
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
                try takeOption(text.trimmingBlanks)
            } else {
                try takeURLs(text, line)
            }
        } catch {
            entry = nil
            isSkipping = true
            hasEntry = true
            try collector.leaveOut(ManifestError(form: collector.manifest.form, line: line, error.reason))
        }
    }

    mutating func takeEntries() -> [Manifest.Entry] { collector.takeEntries() }

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

    private mutating func takeURLs(_ text: String, _ line: Int) throws(EntryFault) {
        var sources: [Manifest.Source] = []
        let hasTab = text.utf8.withContiguousStorageIfAvailable { $0.contains(0x09) } ?? true
        for part in hasTab ? text.utf8.split(separator: 0x09).map({ String(Substring($0)) }) : [text] {
            let url = part.trimmingBlanks
            if url.isEmpty { continue }
            if let reason = InputURL.fault(in: url) { throw EntryFault(reason) }
            sources.append(Manifest.Source(url))
        }
        entry = Manifest.Entry(sources: sources, line: line)
        hasEntry = true
    }

    private mutating func takeOption(_ text: String) throws(EntryFault) {
        guard let equals = text.utf8.firstIndex(of: UInt8(ascii: "=")) else {
            throw EntryFault("an indented line is an option 'name=value' of the URL above it")
        }
        guard hasEntry else { throw EntryFault("an option stands before the first URL") }
        let name = String(text[..<equals]).trimmingBlanks
        let value = String(text[text.utf8.index(after: equals)...]).trimmingBlanks
        switch name {
        case "out":
            guard !value.isEmpty else { throw EntryFault("out= needs a file name") }
            if let fault = ListedName.fault(in: value) {
                throw EntryFault("out=\(Escaping.visible(value)) cannot be the file's name: \(fault)")
            }
            entry?.name = ManifestName.plain(value)
        case "dir":
            guard !value.isEmpty, !value.utf8.contains(0) else { throw EntryFault("dir= needs a folder") }
            entry?.directory = value
        case "checksum":
            let digest = try digest(value)
            entry?.digests = [digest]
        case "header":
            do throws(InvalidHeader) {
                let field = try HeaderField.parse(value)
                entry?.headers.append(field)
            } catch {
                throw EntryFault(error.reason)
            }
        default: try takeOther(name, value)
        }
    }

    private mutating func takeOther(_ name: String, _ value: String) throws(EntryFault) {
        guard Aria2Options.known.contains(name) else {
            throw EntryFault(
                "option '\(Escaping.visible(name))' is not known here; "
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
