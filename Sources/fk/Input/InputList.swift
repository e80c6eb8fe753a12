import FKCore
import FKMiddleware
import Foundation

#if canImport(Glibc)
    import Glibc
#elseif canImport(Darwin)
    import Darwin
#endif

/// A list of downloads as read from a file or from standard input.
///
/// ```text
/// # one URL a line; empty lines and comments are skipped
/// https://example.com/a.iso
/// https://one.example/b.iso <Tab> https://two.example/b.iso     (mirrors of one file)
///   out=b-renamed.iso                                           (indented: belongs to the line above)
///   dir=/data/images
///   checksum=sha-256=2cf2…
/// ```
///
/// Lines end with LF, CRLF or CR; a byte order mark is skipped; the text is UTF-8.
enum InputList {
    /// One download of the list.
    struct Entry: Sendable, Hashable {
        var url: String
        var mirrors: [String] = []
        /// As written: relative paths are still relative.
        var directory: String?
        var fileName: String?
        var checksum: Checksum?
        var headers: [ResponseHead.Field] = []
        /// The line of its URL, from 1.
        var line: Int

        /// Where the file goes that the entry has a name for.
        ///
        /// - Parameter base: the task's folder, absolute. The name stays below it, symbolic links included.
        /// - Throws: `UsageError` that names the line.
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

    /// What is wrong with a list, and where.
    struct Fault: Error, Hashable, CustomStringConvertible {
        var source: String
        /// From 1; 0 when the whole list is meant.
        var line: Int
        var reason: String
        var description: String { line > 0 ? "\(source):\(line): \(reason)" : "\(source): \(reason)" }
    }

    /// Longest list that is read, so that `-i /dev/zero` ends: 1 GiB.
    static let maxBytes = 1 << 30

    /// Reads and parses a file; `-` is standard input.
    static func read(_ path: String) throws(Fault) -> [Entry] {
        let source = path == "-" ? "standard input" : Escaping.visible(path)
        let bytes = try contents(path, source)
        let entries = try parse(bytes, source: source)
        guard !entries.isEmpty else {
            throw Fault(source: source, line: 0, reason: "the list is empty: it names no URL")
        }
        return entries
    }

    /// Parses a list. All of it is checked before any of it is returned.
    static func parse(_ bytes: [UInt8], source: String) throws(Fault) -> [Entry] {
        var parser = InputListParser(source: source)
        try bytes.withUnsafeBufferPointer { buffer throws(Fault) in
            var start = buffer.starts(with: [0xef, 0xbb, 0xbf]) ? 3 : 0
            while start < buffer.count {
                var end = start
                while end < buffer.count, buffer[end] != 0x0a, buffer[end] != 0x0d { end += 1 }
                try parser.take(buffer[start..<end])
                let isPair = end + 1 < buffer.count && buffer[end] == 0x0d && buffer[end + 1] == 0x0a
                start = end + (isPair ? 2 : 1)
            }
        }
        return parser.entries
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

/// Takes a list line by line.
struct InputListParser {
    let source: String
    private(set) var entries: [InputList.Entry] = []
    private var line = 0

    init(source: String) {
        self.source = source
    }

    /// - Parameter bytes: the next line without its end.
    mutating func take(_ bytes: Slice<UnsafeBufferPointer<UInt8>>) throws(InputList.Fault) {
        line += 1
        guard let first = bytes.first(where: { $0 != 0x20 && $0 != 0x09 }), first != UInt8(ascii: "#") else { return }
        guard let text = String(validating: bytes, as: UTF8.self) else { throw fault("the line is not UTF-8 text") }
        if bytes.first == 0x20 || bytes.first == 0x09 {
            try takeOption(trim(text))
        } else {
            try takeURLs(text)
        }
    }

    private mutating func takeURLs(_ text: String) throws(InputList.Fault) {
        var urls: [String] = []
        for part in text.utf8.split(separator: 0x09) {
            let url = trim(String(Substring(part)))
            if url.isEmpty { continue }
            if let reason = InputURL.fault(in: url) { throw fault(reason) }
            urls.append(url)
        }
        entries.append(InputList.Entry(url: urls[0], mirrors: Array(urls.dropFirst()), line: line))
    }

    private mutating func takeOption(_ text: String) throws(InputList.Fault) {
        guard let equals = text.utf8.firstIndex(of: UInt8(ascii: "=")) else {
            throw fault("an indented line is an option 'name=value' of the URL above it")
        }
        guard !entries.isEmpty else { throw fault("an option stands before the first URL") }
        let name = trim(String(text[..<equals]))
        let value = trim(String(text[text.index(after: equals)...]))
        let index = entries.count - 1
        switch name {
        case "out":
            guard !value.isEmpty else { throw fault("out= needs a file name") }
            if let objection = ListedName.objection(to: value) {
                throw fault("out=\(Escaping.visible(value)) cannot be the file's name: \(objection)")
            }
            entries[index].fileName = value
        case "dir":
            guard !value.isEmpty, !value.utf8.contains(0) else { throw fault("dir= needs a folder") }
            entries[index].directory = value
        case "checksum":
            do {
                entries[index].checksum = try Checksum(parsing: value)
            } catch {
                throw fault((error as? DownloadError)?.message ?? String(describing: error))
            }
        case "header":
            do {
                entries[index].headers.append(try HeaderField.parse(value))
            } catch {
                throw fault(error.reason)
            }
        default:
            throw fault("option '\(Escaping.visible(name))' is not known here; out, dir, checksum and header are")
        }
    }

    private func trim(_ text: String) -> String {
        let blanks: (UInt8) -> Bool = { $0 == 0x20 || $0 == 0x09 }
        guard let start = text.utf8.firstIndex(where: { !blanks($0) }),
            let end = text.utf8.lastIndex(where: { !blanks($0) })
        else { return "" }
        return String(text[start...end])
    }

    private func fault(_ reason: String) -> InputList.Fault {
        InputList.Fault(source: source, line: line, reason: reason)
    }
}
