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
        .flag("skip-bad", nil, "skip bad lines of the list and take the others"),
    ]

    /// The maximum size in bytes of a list that is fetched.
    static let maxFetched = 64 << 20

    /// The largest number of faults that are shown.
    static let maxShown = 20

    /// The bytes that are parsed at once. The library's entries for 1 MiB of URLs take 10 MB.
    private static let portion = 1 << 16

    init(_ path: String, _ arguments: ParsedArguments) throws {
        if NearbyFile.isURL(path), arguments["input"] == path, !arguments.has("signed-by") {
            let shown = Escaping.visible(URLMasking.mask(path))
            throw arguments.error("-i: \(shown) is a URL. 'fk barrel import NAME URL' reads a list from a server.")
        }
        self.path = path
        if let text = arguments["format"] {
            let choice = try arguments.parseChoice(text, "--format", of: Manifest.Form.self)
            guard choice != .hubTree else {
                throw arguments.error("--format: a hub's repository is imported with 'fk barrel import <name> hf:…'.")
            }
            form = choice
        }
        if let base = arguments["base"] {
            if let reason = InputURL.fault(in: base) { throw arguments.error("--base: \(reason).") }
            reading.baseURL = base
        }
        if arguments.has("skip-bad") { reading.skipsBadEntries = true }
    }

    init(_ path: String) { self.path = path }

    /// The name for messages.
    var source: String { path == "-" ? "standard input" : Escaping.visible(URLMasking.mask(path)) }

    /// The name that tells a list's form; nil without one.
    private var fileName: String? {
        path == "-" ? nil : NearbyFile.isURL(path) ? FileNameRules.name(url: path, head: nil) : path
    }

    /// The folder of a bag; nil if the path leads to no bag.
    func bagFolder(in folder: String) -> String? {
        guard path != "-", form == nil || form == .bagit, let full = try? Paths.absolute(path, from: folder) else {
            return nil
        }
        if Self.isFolder(full) { return full }
        let (parent, name) = Paths.split(full)
        guard Self.describesBag(name), let parent, access("\(parent)/bagit.txt", F_OK) == 0 else { return nil }
        return parent
    }

    /// True for the names of the files that describe a bag (RFC 8493), its tag manifests aside.
    private static func describesBag(_ name: String) -> Bool {
        name == "bagit.txt" || name == "fetch.txt" || (name.hasPrefix("manifest-") && name.hasSuffix(".txt"))
    }

    /// Reads the list.
    ///
    /// - Parameters:
    ///   - folder: the absolute path of the current folder.
    ///   - take: receives the entries in order, a portion at a time, so that a long list is never in memory twice.
    /// - Returns: the list without its entries.
    /// - Throws: `Fault` for a list that cannot be read; the error of `take`.
    func read(in folder: String, _ take: ([Manifest.Entry], Manifest.Form?) throws -> Void) throws -> Manifest {
        do {
            var manifest: Manifest
            if let bag = bagFolder(in: folder) {
                manifest = try Manifest.bag(bagFiles(bag), reading)
            } else {
                var reader = ManifestReader(form, fileName: fileName, reading)
                try portions(of: path) { bytes in
                    try reader.take(bytes)
                    let entries = reader.takeEntries()
                    if !entries.isEmpty { try take(entries, reader.form) }
                }
                manifest = try reader.finish()
            }
            let entries = manifest.entries
            manifest.entries = []
            if let signer {
                if let other = manifest.facts.signedBy, other != signer {
                    throw Fault(
                        source: source, line: 0,
                        reason: "the signature is by the key \(SignatureKey.shown(signer)), and the lock names the key "
                            + SignatureKey.shown(other))
                }
                manifest.facts.signedBy = signer
            }
            try take(entries, manifest.form)
            return manifest
        } catch let error as ManifestError {
            throw Fault(source, error)
        }
    }

    // MARK: Files

    private static func isFolder(_ path: String) -> Bool {
        var status = stat()
        return stat(path, &status) == 0 && status.st_mode & S_IFMT == S_IFDIR
    }

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

    /// The whole list.
    ///
    /// - Throws: `Fault` for a list that cannot be read or is too long.
    func contents() throws -> [UInt8] {
        var bytes: [UInt8] = []
        try portions(of: path) { portion in
            bytes += portion
            guard bytes.count <= 1 << 30 else {
                throw Fault(source: source, line: 0, reason: "the list is longer than 1 GiB")
            }
        }
        return bytes
    }

    private func portions(of path: String, _ take: ([UInt8]) throws -> Void) throws {
        if let proven {
            for start in stride(from: 0, to: proven.count, by: Self.portion) {
                try take(Array(proven[start..<min(start + Self.portion, proven.count)]))
            }
            return
        }
        let source = path == "-" ? "standard input" : Escaping.visible(path)
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
            try take(Array(chunk[..<count]))
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
            self.init(
                source: error.file.map { "\(source)/\(Escaping.visible($0))" } ?? source, line: error.line,
                column: error.column, reason: error.reason)
        }

        var description: String {
            var place = source
            if line > 0 { place += ":\(line)" }
            if line > 0, column > 0 { place += ":\(column)" }
            return "\(place): \(reason)"
        }
    }
}
