import FKMiddleware

/// Reads config files of curl (`curl -K`): one option on each line, with `=`, `:` or a blank before its value.
///
/// ```text
/// url = "https://example.com/a.iso"
/// output = "a-renamed.iso"
/// header = "X-A: 1"
/// next
/// ```
///
/// `url` and `output` are paired in their order, as curl does; `remote-name` takes the place of an `output`. `header`, `user-agent` and
/// `referer` are orders for the addresses up to `next`. An option that asks the server for something else than the file, such as `data`
/// or `range`, is a bad line, and so is an address whose braces or brackets curl expands. Other options are named and ignored.
struct CurlConfigParser: LineFormat {
    private var collector: ManifestCollector
    /// The files up to `next`.
    private var urls: [(url: String, line: Int)] = []
    /// The names of the files in order; nil for the one of the URL (`remote-name`).
    private var outputs: [(name: String?, line: Int)] = []
    private var headers: [HeaderField] = []
    private var folder: String?
    /// False if braces and brackets belong to the addresses (`globoff`).
    private var expands = true

    /// The options without a meaning here that need no word.
    private static let silent: Set<String> = [
        "remote-name-all", "location", "L", "location-trusted", "fail", "f", "silent", "s", "show-error", "S",
        "create-dirs", "continue-at", "C", "parallel", "Z", "progress-bar", "#", "compressed",
        "fail-early",
        "no-progress-meter", "retry-all-errors", "remote-time", "R",
    ]

    /// The options with which curl gets other bytes than those of the file.
    private static let otherRequests: Set<String> = [
        "request", "X", "data", "d", "data-ascii", "data-binary", "data-raw", "data-urlencode", "json", "form", "F",
        "form-string",
        "url-query", "head", "I", "range", "r", "upload-file", "T",
    ]

    init(_ reading: Manifest.Reading) { collector = ManifestCollector(.curl, reading) }

    /// The options that the files have.
    private static let used: Set<String> = [
        "url", "output", "o", "output-dir", "remote-name", "O", "header", "H", "user-agent", "A", "referer", "e",
        "next",
        "globoff", "g",
    ]
    /// Some of the options that are named and ignored, by which a config file is known.
    private static let others: Set<String> = [
        "proxy", "x", "user", "u", "cookie", "b", "cookie-jar", "c", "insecure", "k", "cacert", "cert", "E", "key",
        "max-time", "m", "connect-timeout", "retry", "retry-delay", "retry-max-time", "limit-rate", "parallel-max",
        "verbose", "v", "netrc", "n", "http1.1", "http2", "ipv4", "ipv6", "tlsv1.2", "max-redirs", "speed-limit",
        "speed-time", "write-out", "w", "resolve", "interface", "remote-header-name", "J", "dump-header", "D",
        "max-filesize", "proxy-user", "noproxy", "capath", "ciphers", "keepalive-time", "stderr", "trace",
    ]
    /// The short options that have a value.
    private static let shortWithValue = Set("AbcCdDeEFHKmoPQrtTuUwxXyYz")

    private static func isKnown(_ name: String) -> Bool {
        used.contains(name) || silent.contains(name) || otherRequests.contains(name) || others.contains(name)
    }

    /// True for a line as curl writes it: an option that is known here.
    static func isLine(_ line: ArraySlice<UInt8>) -> Bool {
        guard let options = options(line), options.allSatisfy({ isKnown($0.name) }), let option = options.first else {
            return false
        }
        if option.name == "url" { return option.value.contains("://") || option.hasSign && !option.value.isEmpty }
        let isDashed = line.first { $0 != 0x20 && $0 != 0x09 } == UInt8(ascii: "-")
        if isDashed || line.contains(UInt8(ascii: "\"")) { return true }
        guard option.name.utf8.count > 1, option.hasSign || option.value.isEmpty else { return false }
        switch option.name {
        case "output", "output-dir", "user-agent", "referer": return !option.value.isEmpty
        case "next", "header", "remote-name", "globoff": return true
        default: return silent.contains(option.name)
        }
    }

    private struct Option {
        var name: String
        var value = ""
        /// True if an equals sign or a colon stands before the value.
        var hasSign = false
    }

    /// The options of a line with their values, which quotes may enclose: one, or several letters behind a dash. nil for another line.
    private static func options(_ line: ArraySlice<UInt8>) -> [Option]? {
        guard let text = String(validating: line, as: UTF8.self)?.trimmingBlanks else { return nil }
        let plain = text.drop { $0 == "-" }
        if text.hasPrefix("-"), !text.hasPrefix("--") { return letters(plain) }
        let name = String(plain.prefix { $0.isLetter || $0 == "-" || $0 == "." || $0.isNumber })
        var rest = plain.dropFirst(name.count).drop { $0 == " " || $0 == "\t" }
        // `https://…` is no option.
        guard !name.isEmpty, !rest.hasPrefix("://") else { return nil }
        let hasSign = rest.first == "=" || rest.first == ":"
        if hasSign { rest = rest.dropFirst() }
        guard hasSign || text.hasPrefix("-") || rest.isEmpty || rest.hasPrefix("\"") || isKnown(name),
            let value = value(rest)
        else { return nil }
        return [Option(name: name, value: value, hasSign: hasSign)]
    }

    /// Reads `-LO`, `-oNAME` and `-o NAME`, without the dash.
    private static func letters(_ text: Substring) -> [Option]? {
        let word = text.prefix { $0 != " " && $0 != "\t" }
        guard !word.isEmpty, let value = value(text[word.endIndex...]) else { return nil }
        var options: [Option] = []
        for index in word.indices {
            options.append(Option(name: String(word[index])))
            guard shortWithValue.contains(word[index]) else { continue }
            let rest = word[word.index(after: index)...]
            options[options.count - 1].value = rest.isEmpty ? value : String(rest)
            break
        }
        return options
    }

    /// A value without the quotes around it, or up to the next blank; nil if a quote has no end.
    private static func value(_ text: Substring) -> String? {
        let text = text.drop { $0 == " " || $0 == "\t" }
        guard text.first == "\"" else { return String(text.prefix { $0 != " " && $0 != "\t" }) }
        var value = ""
        var isEscape = false
        for character in text.dropFirst() {
            if isEscape {
                value.append(["n": "\n", "t": "\t", "r": "\r", "v": "\u{b}"][character] ?? character)
                isEscape = false
            } else if character == "\\" {
                isEscape = true
            } else if character == "\"" {
                return value
            } else {
                value.append(character)
            }
        }
        return nil
    }

    mutating func parse(_ bytes: ArraySlice<UInt8>, _ line: Int) throws(ManifestError) {
        guard let first = bytes.first(where: { $0 != 0x20 && $0 != 0x09 }), first != UInt8(ascii: "#") else { return }
        guard let options = Self.options(bytes) else {
            return try collector.leaveOut(
                ManifestError(
                    form: .curl, line: line, "the line is no option of curl's config files, such as url = \"https://…\""
                ))
        }
        if options.first?.name == "next" { return try close() }
        do throws(EntryFault) {
            for option in options { try apply(option.name, option.value, line) }
        } catch {
            try collector.leaveOut(ManifestError(form: .curl, line: line, error.reason))
        }
    }

    private mutating func apply(_ name: String, _ value: String, _ line: Int) throws(EntryFault) {
        switch name {
        case "url":
            if let fault = value.urlFault { throw EntryFault(fault) }
            urls.append((value, line))
        case "output", "o": outputs.append((value, line))
        case "remote-name", "O": outputs.append((nil, line))
        case "output-dir": folder = value
        case "globoff", "g": expands = false
        case "header", "H": headers.append(try Self.header(value))
        case "user-agent", "A": headers.append(try Self.header("User-Agent: \(value)"))
        case "referer", "e": headers.append(try Self.header("Referer: \(value)"))
        case _ where Self.otherRequests.contains(name):
            throw EntryFault(
                "'\(name)' asks the server for something else than the file, which fk does not do: leave the line out for the whole file"
            )
        default:
            if !Self.silent.contains(name), !collector.manifest.ignoredOptions.contains(name) {
                collector.manifest.ignoredOptions.append(name)
            }
        }
    }

    private static func header(_ text: String) throws(EntryFault) -> HeaderField {
        do throws(HeaderField.Invalid) { return try HeaderField.parse(text) } catch { throw EntryFault(error.reason) }
    }

    private mutating func close() throws(ManifestError) {
        for (index, file) in urls.enumerated() {
            if expands, Self.isPattern(file.url) {
                try collector.leaveOut(
                    ManifestError(
                        form: .curl, line: file.line,
                        "curl expands the braces and brackets of this URL, which fk does not do in a list: write one URL a line, "
                            + "or add 'globoff' if they belong to the URL"))
                continue
            }
            var entry = Manifest.Entry(sources: [Manifest.Source(file.url)], line: file.line)
            entry.headers = headers
            entry.directory = folder
            if index < outputs.count, let name = outputs[index].name {
                do throws(EntryFault) { entry.name = try EntryFields.name(name) } catch {
                    try collector.leaveOut(ManifestError(form: .curl, line: outputs[index].line, error.reason))
                    continue
                }
            }
            try collector.add(entry)
        }
        (urls, outputs, headers, folder, expands) = ([], [], [], nil, true)
    }

    /// True for a URL that curl expands to several: with `{`, or with `[` that does not begin an IPv6 address.
    private static func isPattern(_ url: String) -> Bool {
        let rest = url.range(of: "://").map { url[$0.upperBound...] } ?? url[...]
        let host = rest.prefix { $0 != "/" }
        let start = host.lastIndex(of: "@").map { rest.index(after: $0) } ?? rest.startIndex
        return url.contains("{") || rest[start...].dropFirst().contains("[")
    }

    mutating func drainEntries() -> [Manifest.Entry] { collector.drainEntries() }

    mutating func finish() throws(ManifestError) -> Manifest {
        try close()
        return collector.manifest
    }
}
