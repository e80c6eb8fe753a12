import FKCore
import FKMiddleware
import Foundation

#if canImport(Glibc)
    import Glibc
#elseif canImport(Darwin)
    import Darwin
#endif

/// A list of downloads from a file or standard input.
///
/// ```text
/// # one URL per line; empty lines and comments are skipped
/// https://example.com/a.iso
/// https://one.example/b.iso <Tab> https://two.example/b.iso     (mirrors of one file)
///   out=b-renamed.iso                                           (indented: belongs to the line above)
///   dir=/data/images
///   checksum=sha-256=2cf2…
/// ```
///
/// Lines end with LF, CRLF or CR. A byte order mark is skipped. The text must be UTF-8. The parser is the library's
/// (`Manifest`).
enum InputList {
    /// One download of the list.
    struct Entry: Sendable, Hashable {
        var url: String
        var mirrors: [String] = []
        /// As written in the list; it may be relative.
        var directory: String?
        var fileName: String?
        var checksum: Checksum?
        var headers: [ResponseHead.Field] = []
        /// Other options of aria2.
        var options: [Manifest.Option] = []
        /// The line of its URL, counted from 1.
        var line: Int

        /// The folder and the name of the entry's file.
        ///
        /// - Parameter base: the absolute path of the task's folder. The file stays below it, also through symbolic
        ///   links.
        /// - Throws: `UsageError` with the number of the line.
        func place(_ fileName: String, under base: String) throws -> (name: String, folder: String) {
            let (subfolder, name) = ListedName.split(fileName)
            guard let subfolder else { return (name, base) }
            let base = try Paths.absolute(base, from: base)
            let folder = try Paths.absolute(subfolder, from: base)
            guard Paths.isBelow(folder, base) else {
                throw UsageError(
                    "line \(line): out=\(Escaping.visible(fileName)) leads out of the folder \(base) to \(folder). "
                        + "Choose the folder with dir=.")
            }
            return (name, folder)
        }
    }

    /// A problem of a list, with its line.
    struct Fault: Error, Hashable, CustomStringConvertible {
        var source: String
        /// Counted from 1; 0 for the whole list.
        var line: Int
        var reason: String
        var description: String { line > 0 ? "\(source):\(line): \(reason)" : "\(source): \(reason)" }
    }

    /// The maximum length of a list in bytes, so that `-i /dev/zero` ends.
    static let maxBytes = 1 << 30

    /// The bytes that are parsed at once. The library's entries for 1 MiB of URLs take 10 MB.
    private static let portion = 1 << 16

    /// Reads and parses a file; `-` is standard input.
    ///
    /// - Parameter warn: receives a message for each part of the list that has no meaning here.
    static func read(_ path: String, warn: (String) -> Void = { _ in }) throws(Fault) -> [Entry] {
        let source = path == "-" ? "standard input" : Escaping.visible(path)
        let bytes = try contents(path, source)
        let entries = try parse(bytes, source: source, warn: warn)
        guard !entries.isEmpty else {
            throw Fault(source: source, line: 0, reason: "the list is empty: it names no URL")
        }
        return entries
    }

    /// Parses and checks a whole list before it returns an entry.
    static func parse(
        _ bytes: [UInt8], source: String, warn: (String) -> Void = { _ in }
    ) throws(Fault) -> [Entry] {
        do throws(ManifestError) {
            var reader = ManifestReader(.urls)
            var entries: [Entry] = []
            // In portions, so that a long list is never in memory in two forms.
            for start in stride(from: 0, to: bytes.count, by: portion) {
                try reader.take(Array(bytes[start..<min(start + portion, bytes.count)]))
                entries += reader.takeEntries().map(Entry.init)
            }
            let manifest = try reader.finish()
            if !manifest.ignoredOptions.isEmpty {
                let names = manifest.ignoredOptions.joined(separator: ", ")
                warn("\(source): aria2's options without a meaning here are ignored: \(names).")
            }
            return entries + manifest.entries.map(Entry.init)
        } catch {
            throw Fault(source: source, line: error.line, reason: error.reason)
        }
    }

    private static func contents(_ path: String, _ source: String) throws(Fault) -> [UInt8] {
        let descriptor = path == "-" ? STDIN_FILENO : open(path, O_RDONLY | O_CLOEXEC)
        guard descriptor >= 0 else { throw Fault(source: source, line: 0, reason: String(cString: strerror(errno))) }
        defer { if descriptor != STDIN_FILENO { close(descriptor) } }
        var bytes: [UInt8] = []
        let chunk = UnsafeMutableRawBufferPointer.allocate(byteCount: 1 << 16, alignment: 16)
        defer { chunk.deallocate() }
        while true {
            let count = Glue.read(descriptor, chunk)
            if count < 0 { throw Fault(source: source, line: 0, reason: String(cString: strerror(errno))) }
            if count == 0 { return bytes }
            bytes.append(contentsOf: chunk[..<count])
            if bytes.count > maxBytes { throw Fault(source: source, line: 0, reason: "the list is longer than 1 GiB") }
        }
    }
}

extension InputList.Entry {
    init(_ entry: Manifest.Entry) {
        url = entry.sources.first?.url ?? ""
        mirrors = entry.sources.dropFirst().map(\.url)
        directory = entry.directory
        fileName = entry.name
        checksum = entry.checksum
        headers = entry.headers
        options = entry.options
        line = entry.line
    }

    init(url: String, line: Int) {
        self.url = url
        self.line = line
    }

    /// Adds the entry's own options to the shared ones.
    func apply(to task: inout TaskOptions) {
        if let checksum { task.checksum = checksum }
        Aria2Options.apply(options, url: url, to: &task)
        guard !headers.isEmpty else { return }
        let all = (task.headers ?? []) + headers
        task.headers = all
        task.secretHeaders = HeaderField.secretNames(of: all)
    }
}
