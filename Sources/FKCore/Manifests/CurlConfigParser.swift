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
/// `url` and `output` are paired in their order, as curl does. `header`, `user-agent` and `referer` are orders for the addresses up to
/// `next`. An option that asks the server for something else than the file, such as `data` or `range`, is a bad line. Other options are
/// named and ignored.
struct CurlConfigParser: LineFormat {
    private var collector: ManifestCollector
    /// The files up to `next`.
    private var urls: [(url: String, line: Int)] = []
    private var outputs: [(name: String, line: Int)] = []
    private var headers: [HeaderField] = []
    private var folder: String?

    /// The options without a meaning here that need no word.
    private static let silent: Set<String> = [
        "remote-name", "O", "remote-name-all", "location", "L", "location-trusted", "fail", "f", "silent", "s",
        "show-error", "S",
        "create-dirs", "continue-at", "C", "globoff", "g", "parallel", "Z", "progress-bar", "#", "compressed",
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

    /// True for a line as curl writes it: an option that is known here.
    static func isLine(_ line: ArraySlice<UInt8>) -> Bool {
        guard let (name, value) = option(line) else { return false }
        if ["url", "output", "output-dir", "user-agent", "referer"].contains(name) { return !value.isEmpty }
        if ["next", "header"].contains(name) || silent.contains(name) && name.utf8.count > 1 { return true }
        guard line.first(where: { $0 != 0x20 && $0 != 0x09 }) == UInt8(ascii: "-") || line.contains(UInt8(ascii: "\""))
        else { return false }
        return silent.contains(name) || otherRequests.contains(name) || used.contains(name) || others.contains(name)
    }

    private static let used: Set<String> = ["o", "H", "A", "e"]
    /// Some of the options that are named and ignored, by which a config file is known.
    private static let others: Set<String> = [
        "proxy", "x", "user", "u", "cookie", "b", "cookie-jar", "c", "insecure", "k", "cacert", "cert", "E", "key",
        "max-time", "m", "connect-timeout", "retry", "retry-delay", "retry-max-time", "limit-rate", "parallel-max",
        "verbose", "v", "netrc", "n", "http1.1", "http2", "ipv4", "ipv6", "tlsv1.2", "max-redirs", "speed-limit",
        "speed-time", "write-out", "w", "resolve", "interface", "remote-header-name", "J", "dump-header", "D",
    ]

    /// The name of an option and its value, which quotes may enclose; nil for another line.
    private static func option(_ line: ArraySlice<UInt8>) -> (name: String, value: String)? {
        guard let text = String(validating: line, as: UTF8.self)?.trimmingBlanks else { return nil }
        let isDashed = text.hasPrefix("-")
        let plain = text.drop { $0 == "-" }
        let name = plain.prefix { $0.isLetter || $0 == "-" || $0.isNumber }
        guard !name.isEmpty else { return nil }
        var rest = plain[name.endIndex...].drop { $0 == " " || $0 == "\t" }
        let hasSign = rest.first == "=" || rest.first == ":"
        // `https://…` is no option.
        if rest.hasPrefix("://") { return nil }
        if hasSign { rest = rest.dropFirst().drop { $0 == " " || $0 == "\t" } }
        guard hasSign || isDashed || rest.isEmpty || rest.hasPrefix("\"") else { return nil }
        guard rest.first == "\"" else { return (String(name), String(rest.prefix { $0 != " " && $0 != "\t" })) }
        var value = ""
        var isEscape = false
        for character in rest.dropFirst() {
            if isEscape {
                value.append(["n": "\n", "t": "\t", "r": "\r", "v": "\u{b}"][character] ?? character)
                isEscape = false
            } else if character == "\\" {
                isEscape = true
            } else if character == "\"" {
                return (String(name), value)
            } else {
                value.append(character)
            }
        }
        return nil
    }

    mutating func parse(_ bytes: ArraySlice<UInt8>, _ line: Int) throws(ManifestError) {
        guard let first = bytes.first(where: { $0 != 0x20 && $0 != 0x09 }), first != UInt8(ascii: "#") else { return }
        guard let (name, value) = Self.option(bytes) else {
            return try collector.leaveOut(
                ManifestError(
                    form: .curl, line: line, "the line is no option of curl's config files, such as url = \"https://…\""
                ))
        }
        if name == "next" { return try close() }
        do throws(EntryFault) { try apply(name, value, line) } catch {
            try collector.leaveOut(ManifestError(form: .curl, line: line, error.reason))
        }
    }

    private mutating func apply(_ name: String, _ value: String, _ line: Int) throws(EntryFault) {
        switch name {
        case "url":
            if let fault = value.urlFault { throw EntryFault(fault) }
            urls.append((value, line))
        case "output", "o": outputs.append((value, line))
        case "output-dir": folder = value
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
            var entry = Manifest.Entry(sources: [Manifest.Source(file.url)], line: file.line)
            entry.headers = headers
            entry.directory = folder
            if index < outputs.count {
                do throws(EntryFault) { entry.name = try EntryFields.name(outputs[index].name) } catch {
                    try collector.leaveOut(ManifestError(form: .curl, line: outputs[index].line, error.reason))
                    continue
                }
            }
            try collector.add(entry)
        }
        (urls, outputs, headers, folder) = ([], [], [], nil)
    }

    mutating func drainEntries() -> [Manifest.Entry] { collector.drainEntries() }

    mutating func finish() throws(ManifestError) -> Manifest {
        try close()
        return collector.manifest
    }
}
