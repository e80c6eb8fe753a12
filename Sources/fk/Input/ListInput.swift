import FKCore
import FKManifests
import FKMiddleware
import Foundation

/// A list of files that a command reads: `-i FILE`, or the operand of `barrel import`. A signed one may be a URL.
///
/// The library's parsers (`Manifest`) recognise its form by its content. A folder with `bagit.txt` is a bag, and so is
/// one of the bag's own files.
struct ListInput: Sendable {
    /// The path, or the URL of a signed list; `-` is standard input.
    var path: String
    /// The form that `--format` insists on; nil recognises it.
    var form: Manifest.Form?
    var reading = Manifest.Reading()
    /// The bytes whose signature was verified. These are parsed, because the file may have changed since.
    var proven: [UInt8]?
    /// The signer of the proven list.
    var signer: String?

    /// The forms of `--format`. A page of a hub's tree has no addresses of its own.
    static let forms = Manifest.Form.allCases.filter { $0 != .hubTree }

    static let specs: [OptionSpec] = [
        .value(
            "format", nil, "FORM", hint: .choices(forms.map(\.rawValue)),
            "the form of the list, if it should not be recognised: " + forms.map(\.rawValue).joined(separator: ", ")),
        .value("base", nil, "URL", "where the names of a checksum list and relative URLs are"),
        .repeated(
            "column", nil, "FIELD=NAME",
            "the column or member NAME of the list has FIELD: url, mirror, path, name, folder, size, checksum, md5, sha256 ..."
        ),
        .value(
            "url-template", nil, "URL",
            "the URL of each row, with names of columns in braces: 'https://host/{id}'"),
        .flag("skip-bad", nil, "skip bad lines of the list and take the others"),
        .flag(
            "hidden", nil,
            "take names that begin with a dot from a server's list as well; without it they are left out in a home folder "
                + "and with --metalink"),
    ]

    /// The options that are about the list itself.
    static let optionNames = ["format", "base", "column", "url-template", "skip-bad"]

    /// The maximum size in bytes of a list that is fetched.
    static let maxFetched = 64 << 20

    /// The largest number of faults that are shown.
    static let maxShown = 20

    /// The bytes that are parsed at once. The library's entries for 1 MiB of URLs take 10 MB.
    private static let portion = 1 << 16

    init(_ path: String, _ arguments: ParsedArguments) throws {
        self.path = try Self.place(path, arguments)
        if let text = arguments["format"] {
            guard text != Manifest.Form.hubTree.rawValue else {
                throw arguments.error("--format: a hub's repository is imported with 'fk barrel import <name> hf:…'.")
            }
            guard let choice = Self.forms.first(where: { $0.rawValue == text }) else {
                throw arguments.noChoice(text, "--format", among: Self.forms.map(\.rawValue))
            }
            form = choice
        }
        if let base = arguments["base"] {
            if let reason = base.urlFault { throw arguments.error("--base: \(reason).") }
            reading.baseURL = base
        }
        for text in arguments.all("column") {
            let parts = text.split(separator: "=", maxSplits: 1).map(String.init)
            guard parts.count == 2, let column = Manifest.Column(parts[0], name: parts[1]) else {
                throw arguments.error(
                    "--column: '\(text.visible)' is not FIELD=NAME with FIELD one of url, mirror, path, name, folder, size, "
                        + "checksum, md5, sha256 and the other algorithms.")
            }
            reading.columns.append(column)
        }
        if let template = arguments["url-template"] {
            let filled = template.replacing(/\{[^{}]*\}/, with: "x")
            if let reason = filled.urlFault { throw arguments.error("--url-template: \(reason).") }
            guard filled != template else {
                throw arguments.error(
                    "--url-template: no column's name is in braces. Write it as 'https://host/{id}'.")
            }
            reading.urlTemplate = template
        }
        if arguments.has("skip-bad") { reading.skipsBadEntries = true }
        // Each file gets the next free name.
        reading.allowsTwins = arguments.has("rename")
    }

    init(_ path: String) { self.path = path }

    /// The path of a `file:` URL; other places as they are.
    ///
    /// - Throws: `UsageError` for a URL of a scheme that no list may have.
    private static func place(_ text: String, _ arguments: ParsedArguments) throws -> String {
        guard !NearbyFile.isURL(text), let end = text.range(of: "://"), access(text, F_OK) != 0 else { return text }
        if text[..<end.lowerBound].lowercased() == "file", let path = URL(string: text)?.path, !path.isEmpty {
            return path
        }
        throw arguments.error(
            "\(text.masked.visible): a list is a file, '-' for standard input, or an http, https or file URL."
        )
    }

    /// The name for messages.
    var source: String { path == "-" ? "standard input" : path.masked.visible }

    /// The author of the list: the owner names files on this machine, and a server sends what a URL leads to.
    var speaker: Speaker { NearbyFile.isURL(path) ? .list(source) : .owner }

    /// The name that tells a list's form; nil without one.
    private var fileName: String? {
        guard path != "-" else { return nil }
        let name = NearbyFile.isURL(path) ? FileNameRules.name(url: path, head: nil) : path
        return Unpacker.allCases.reduce(name) { $1.plainName($0) }
    }

    /// The folder of a bag; nil if the path leads to no bag.
    func bagFolder(in folder: String) -> String? {
        guard path != "-", form == nil || form == .bagit, let full = try? Paths.absolute(path, from: folder) else {
            return nil
        }
        if Paths.isFolder(full) { return full }
        let (parent, name) = Paths.split(full)
        guard Self.describesBag(name), let parent, access("\(parent)/bagit.txt", F_OK) == 0 else { return nil }
        return parent
    }

    /// True for the names of the files that describe a bag (RFC 8493), its tag manifests aside.
    private static func describesBag(_ name: String) -> Bool {
        name == "bagit.txt" || name == "fetch.txt" || (name.hasPrefix("manifest-") && name.hasSuffix(".txt"))
    }

    /// - Parameters:
    ///   - folder: the absolute path of the current folder.
    ///   - take: receives the entries in order, a portion at a time, so that a long list is never in memory twice.
    /// - Returns: the list without its entries, and the keys of a server's list that would steer the program.
    /// - Throws: `Fault` for a list that cannot be read; the error of `take`.
    func read(
        in folder: String, _ take: ([Manifest.Entry], Manifest.Form?) throws -> Void
    ) throws -> (Manifest, leftOutKeys: [String]) {
        do {
            var manifest: Manifest
            var leftOutKeys: [String] = []
            if !speaker.mayOrder {
                var reader = ServerList.Reader(form, fileName: fileName, reading)
                try portions(of: path) { bytes in
                    try reader.parse(bytes)
                    let files = reader.drainFiles()
                    if !files.isEmpty { try take(files.map(Manifest.Entry.init), reader.form) }
                }
                let (list, files) = try reader.finish()
                manifest = list.manifest
                manifest.entries = files.map(Manifest.Entry.init)
                leftOutKeys = list.leftOutKeys
            } else if let bag = bagFolder(in: folder) {
                manifest = try Manifest.bag(bagFiles(bag), reading)
            } else {
                var reader = ManifestReader(form, fileName: fileName, reading)
                try portions(of: path) { bytes in
                    try reader.take(bytes)
                    let entries = reader.takeEntries()
                    if !entries.isEmpty { try take(entries, reader.form) }
                }
                manifest = try reader.end()
                if !manifest.entries.isEmpty { try take(manifest.entries, manifest.form) }
                while true {
                    let entries = reader.takeEntries()
                    if entries.isEmpty { break }
                    try take(entries, manifest.form)
                }
                manifest.entries = []
            }
            let entries = manifest.entries
            manifest.entries = []
            if let reason = reading.fault(in: manifest.form) { throw Fault(source: source, line: 0, reason: reason) }
            if let signer {
                if let other = manifest.facts.claimedSigner, other != signer {
                    throw Fault(
                        source: source, line: 0,
                        reason: "the signature is by the key \(SignatureKey.shown(signer)), and the lock names the key "
                            + SignatureKey.shown(other))
                }
                manifest.facts.signedBy = signer
            }
            try take(entries, manifest.form)
            return (manifest, leftOutKeys)
        } catch let error as ManifestError {
            throw Fault(source, error)
        }
    }

    // MARK: Files

    /// The files of a bag that describe it. Its tag manifests and its data are not read.
    private func bagFiles(_ folder: String) throws -> [(name: String, bytes: [UInt8])] {
        let names = try FileManager.default.contentsOfDirectory(atPath: folder).sorted()
        var files: [(name: String, bytes: [UInt8])] = []
        for name in names where Self.describesBag(name) {
            var bytes: [UInt8] = []
            try portions(of: "\(folder)/\(name)") { portion in
                bytes += portion
                guard bytes.count <= 1 << 30 else {
                    throw Fault(source: "\(source)/\(name)", line: 0, reason: "the file is longer than 1 GiB")
                }
            }
            files.append((name, bytes))
        }
        return files
    }

    /// - Throws: `Fault` for a list that cannot be read or is too long.
    func contents() throws -> [UInt8] {
        var bytes: [UInt8] = []
        try storedPortions(of: path) { portion, _ in
            bytes += portion
            guard bytes.count <= 1 << 30 else {
                throw Fault(source: source, line: 0, reason: "the list is longer than 1 GiB")
            }
        }
        return bytes
    }

    /// The folder that all folders of a JSON list are in; nil for another list, and for one from standard input, which can be read once.
    func folderOfExport(in folder: String) throws -> String? {
        guard speaker.mayOrder, path != "-", form == nil || form == .json, beginsAsJSON else { return nil }
        var common: [Substring.UTF8View]?
        _ = try read(in: folder) { entries, form in
            guard form == .json else { return }
            for case let own? in entries.map(\.directory) where own.utf8.first == UInt8(ascii: "/") {
                let parts = Substring(own).utf8.split(separator: UInt8(ascii: "/"))
                common = common.map { zip($0, parts).prefix { $0.elementsEqual($1) }.map(\.0) } ?? parts
            }
        }
        return common.map { "/" + $0.map { String(Substring($0)) }.joined(separator: "/") }
    }

    private var beginsAsJSON: Bool {
        if let proven { return Self.isJSON(proven.prefix(Self.begin)) }
        var status = stat()
        // A pipe can be read once.
        guard stat(path, &status) == 0, status.st_mode & S_IFMT == S_IFREG,
            let bytes = try? FileHandle(forReadingFrom: URL(fileURLWithPath: path)).read(upToCount: Self.begin)
        else { return false }
        return Self.isJSON(Array(bytes)[...])
    }

    private static let begin = 4_096

    private static func isJSON(_ bytes: ArraySlice<UInt8>) -> Bool {
        let first = bytes.first { $0 > 0x20 && ![0xef, 0xbb, 0xbf].contains($0) }
        return first == UInt8(ascii: "[") || first == UInt8(ascii: "{")
    }

    /// Reads a file, and unpacks it if it is compressed.
    private func portions(of path: String, _ take: ([UInt8]) throws -> Void) throws {
        do {
            if let proven {
                if let unpacker = Unpacker(proven) {
                    return try take(try unpacker.unpacked(proven, limit: 1 << 30))
                }
                for start in stride(from: 0, to: proven.count, by: Self.portion) {
                    try take(Array(proven[start..<min(start + Self.portion, proven.count)]))
                }
                return
            }
            var packed: [UInt8]?
            var isFirst = true
            var unpacker: Unpacker?
            var isDone = false
            try storedPortions(of: path) { portion, descriptor in
                if isDone { return }
                if isFirst {
                    isFirst = false
                    unpacker = Unpacker(portion)
                    if let unpacker, lseek(descriptor, 0, SEEK_SET) == 0 {
                        try unpacker.unpack(descriptor, take)
                        isDone = true
                        return
                    }
                }
                guard unpacker != nil else { return try take(portion) }
                // A pipe.
                packed = (packed ?? []) + portion
                guard packed?.count ?? 0 <= 1 << 30 else {
                    throw Fault(source: source, line: 0, reason: "the list is longer than 1 GiB")
                }
            }
            if let unpacker, let packed { try take(try unpacker.unpacked(packed, limit: 1 << 30)) }
        } catch let error as Unpacker.Fault {
            throw Fault(source: source, line: 0, reason: error.reason)
        }
    }

    /// Reads a file as it is.
    ///
    /// - Parameter take: receives the bytes, a portion at a time, and the descriptor.
    private func storedPortions(of path: String, _ take: ([UInt8], Int32) throws -> Void) throws {
        let source = path == "-" ? "standard input" : path.visible
        if path == "-", isatty(STDIN_FILENO) == 1 {
            OutputStream.standardError.writeLine("Reading URLs from the terminal, one a line; Ctrl-D ends the list.")
        }
        let descriptor = path == "-" ? STDIN_FILENO : open(path, O_RDONLY | O_CLOEXEC)
        guard descriptor >= 0 else { throw Fault(source: source, line: 0, reason: String(cString: strerror(errno))) }
        defer { if descriptor != STDIN_FILENO { close(descriptor) } }
        let chunk = UnsafeMutableRawBufferPointer.allocate(byteCount: Self.portion, alignment: 16)
        defer { chunk.deallocate() }
        while true {
            let count = Glue.read(descriptor, chunk)
            if count < 0 { throw Fault(source: source, line: 0, reason: String(cString: strerror(errno))) }
            if count == 0 { return }
            try take(Array(chunk[..<count]), descriptor)
        }
    }

    // MARK: Faults

    /// A problem of a list, with its line.
    struct Fault: Error, Hashable, CustomStringConvertible {
        var source: String
        /// Counted from 1; 0 for the whole list.
        var line: Int
        /// Counted from 1; 0 for the whole line.
        var column = 0
        var reason: String

        init(source: String, line: Int, column: Int = 0, reason: String) {
            self.source = source
            self.line = line
            self.column = column
            self.reason = reason
        }

        init(_ source: String, _ error: ManifestError) {
            var place = source
            if let file = error.file {
                // The source may be a file of the bag.
                let (folder, name) = Paths.split(source)
                place = ListInput.describesBag(name) ? folder.map { "\($0)/\(file)" } ?? file : "\(source)/\(file)"
                place = place.visible
            }
            self.init(source: place, line: error.line, column: error.column, reason: error.reason)
        }

        var description: String {
            var place = source
            if line > 0 { place += ":\(line)" }
            if line > 0, column > 0 { place += ":\(column)" }
            return "\(place): \(reason)"
        }
    }
}

extension Manifest.Reading {
    /// The reason why a list of this form cannot be read as the owner says: `--url-template` and `--column` are about columns. nil without
    /// one.
    func fault(in form: Manifest.Form) -> String? {
        guard let option = urlTemplate != nil ? "--url-template" : columns.isEmpty ? nil : "--column" else {
            return nil
        }
        switch form {
        case .csv, .json, .jsonLines, .record, .hubTree: return nil
        case .urls, .aria2, .metalink4, .metalink3, .checksums, .bagit, .lock, .curl, .esgf:
            return
                "\(option) is about the columns of a table or the members of JSON, which this \(form.title) does not have"
        }
    }
}
