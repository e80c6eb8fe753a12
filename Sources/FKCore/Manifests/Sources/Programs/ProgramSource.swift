import FKEngine
import FKMiddleware
import FKTransport
import Foundation

/// The places that a program lists.
package struct ProgramSource: Source {
    /// The most bytes of a list: 1 GiB.
    private static let maxBytes = 1 << 30

    private let program: SourceProgram
    /// False for a program that came with a copy of a work path.
    private let isTrusted: Bool

    package init(_ program: SourceProgram, isTrusted: Bool = true) {
        self.program = program
        self.isTrusted = isTrusted
    }

    package var schemes: [String] { [program.scheme] }
    package var form: String { "\(program.scheme):REST" }

    /// Any text behind the scheme is a place.
    package func place(
        of reference: SourceReference, in environment: [String: String]
    ) throws(DownloadError) -> SourcePlace {
        guard isTrusted else {
            throw DownloadError(
                .middleware,
                "The program of '\(program.scheme):' was not run, because it came with a work path from elsewhere (copied, restored "
                    + "or moved). See it with 'fk source list', and let it run here with 'fk source trust'.")
        }
        guard reference.description.utf8.count <= 4_096,
            !reference.rest.utf8.contains(where: { $0 < 0x20 || $0 == 0x7f })
        else { throw reference.fault("it is too long, or has control characters", form) }
        let name = reference.lastPart.filter { $0 != "?" && $0 != "*" }
        // The program names the servers, so none of them gets the owner's secrets.
        return SourcePlace(reference, folderName: String(name.prefix(100)), address: nil, pinsFiles: true)
    }

    /// Runs the program to its end, and reads what it wrote. Its output is on disk meanwhile.
    package func pages(
        of place: SourcePlace, _ client: SourceClient
    ) -> AsyncThrowingStream<SourcePage, any Error> {
        client.pages { send in
            let output = try ProgramOutput(limit: Self.maxBytes)
            var run = ProgramRun(program.arguments, in: program.directory)
            run.input = question(place, client.choice)
            run.timeLimit = program.timeLimit
            run.variables = [("FK_STAGE", "source")]
            run.sink = { output.append($0) }
            do throws(DownloadError) { _ = try await run() } catch {
                if output.isFull {
                    throw DownloadError(
                        .tooLarge, "The program of '\(program.scheme):' wrote more than \(Self.maxBytes >> 20) MiB.")
                }
                if let fault = output.fault { throw fault }
                throw error
            }
            try await output.read { lines in
                let page = ProgramListing.page(lines, of: program.scheme)
                if let fault = page.fault {
                    throw DownloadError(
                        .protocolViolation, "The list of the program of '\(program.scheme):' cannot be used. \(fault)")
                }
                try await send(page.page)
            }
        }
    }

    /// The line that the program reads.
    private func question(_ place: SourcePlace, _ choice: SourceChoice) -> [UInt8] {
        func list(_ texts: [String]) -> String {
            "["
                + texts.map { text in
                    var bytes: [UInt8] = []
                    JSON.write(text, into: &bytes)
                    return String(decoding: bytes, as: UTF8.self)
                }.joined(separator: ",") + "]"
        }
        let line =
            #"{"source":\#(list([place.reference.description]).dropFirst().dropLast()),"include":"#
            + list(choice.include) + #","exclude":"# + list(choice.exclude) + "}\n"
        return Array(line.utf8)
    }
}

/// A portion of the lines of a program.
enum ProgramListing {
    /// Reads whole lines.
    ///
    /// - Returns: the files with the version, if a line has one; a fault of a line that is no JSON, after which nothing of the list may be
    ///   used.
    static func page(
        _ lines: (bytes: ArraySlice<UInt8>, first: Int), of scheme: String
    ) -> (page: SourcePage, fault: String?) {
        var page = SourcePage()
        var number = lines.first
        for line in lines.bytes.split(separator: 0x0a, omittingEmptySubsequences: false) {
            defer { number += 1 }
            let text = line.last == 0x0d ? line.dropLast() : line
            if text.allSatisfy({ $0 == 0x20 || $0 == 0x09 }) { continue }
            do throws(ManifestError) {
                let object = try JSONReader.object(text, .jsonLines, number)
                if object["url"] == nil, let version = object["version"]?.text {
                    page.version = String(version.prefix(1_000))
                    continue
                }
                let urls = object["url"]?.array?.compactMap(\.string) ?? [object["url"]?.string].compactMap(\.self)
                if let bucket = urls.first, urls.allSatisfy({ $0.hasPrefix("s3://") }) {
                    let reason = "'\(bucket.prefix(200))' is no http or https URL: write the object's address"
                    page.faults.append(SourceFault("", "line \(number): \(reason)", isIncomplete: false))
                    continue
                }
                var parser = JSONLinesParser(Manifest.Reading())
                try parser.parse(text, number)
                let entries = parser.drainEntries()
                let rest = try parser.finish()
                page.faults += rest.faults.map {
                    SourceFault("", "line \($0.line): \($0.reason)", isIncomplete: false)
                }
                page.leftOut.merge(rest.passedOver, uniquingKeysWith: +)
                for member in object.members where isUnknown(member.name) && page.leftOutKeys.count < 100 {
                    if !page.leftOutKeys.contains(member.name) { page.leftOutKeys.append(member.name) }
                }
                page.files += entries.map { entry in
                    var file = entry.facts
                    // The name is the whole path. A file without one has that of its URL.
                    if let name = object["name"]?.string, !name.isEmpty {
                        file.name = name
                    } else if file.name == nil {
                        file.name = FileNameRules.name(url: file.sources.first?.url ?? "", head: nil)
                    }
                    if let version = object["version"]?.text { file.version = String(version.prefix(1_000)) }
                    return file
                }
            } catch {
                return (page, error.description)
            }
        }
        return (page, nil)
    }

    /// True for a key of a line that says nothing about a file here.
    private static func isUnknown(_ key: String) -> Bool {
        ListField(key) == nil && !["version", "id", "type"].contains(key)
    }
}

/// What a program writes, in a file without a name.
final class ProgramOutput: Sendable {
    private struct State {
        var count = 0
        var isFull = false
        var fault: DownloadError?
    }

    /// The bytes of a portion of lines.
    private static let portion = 256 << 10
    /// The maximum length of a line.
    private static let maxLine = 4 << 20

    private let descriptor: Int32
    private let limit: Int
    private let state = Locked(State())

    /// Creates an empty file.
    ///
    /// - Throws: `.disk` if no file can be made.
    init(limit: Int) throws(DownloadError) {
        self.limit = limit
        let path = NSTemporaryDirectory() + "/fk-source-\(UUID().uuidString)"
        descriptor = open(path, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0o600)
        guard descriptor >= 0 else {
            throw DownloadError(
                .disk, "No file for the list of a program can be made.", underlying: String(cString: strerror(errno)))
        }
        unlink(path)
    }

    deinit { close(descriptor) }

    /// True if the program wrote more than the limit.
    var isFull: Bool { state.withLock(\.isFull) }
    /// The error of the disk; nil without one.
    var fault: DownloadError? { state.withLock(\.fault) }

    /// Appends a part; false if there is too much, or if the disk is full.
    func append(_ bytes: [UInt8]) -> Bool {
        state.withLock { state in
            state.count += bytes.count
            guard state.count <= limit else {
                state.isFull = true
                return false
            }
            var rest = bytes[...]
            while !rest.isEmpty {
                let count = rest.withUnsafeBytes { write(descriptor, $0.baseAddress, $0.count) }
                if count < 0, errno == EINTR { continue }
                guard count > 0 else {
                    let code = errno
                    state.fault = DownloadError(
                        code == ENOSPC ? .noSpace : .disk, "The list of a program cannot be kept.",
                        underlying: String(cString: strerror(code)))
                    return false
                }
                rest = rest.dropFirst(count)
            }
            return true
        }
    }

    /// Reads everything in portions of whole lines.
    ///
    /// - Parameter take: receives the lines, with the number of the first one.
    func read(_ take: ((bytes: ArraySlice<UInt8>, first: Int)) async throws -> Void) async throws {
        var offset = 0
        var held: [UInt8] = []
        var first = 1
        while true {
            let bytes = try part(at: offset)
            offset += bytes.count
            held += bytes
            let isEnd = bytes.isEmpty
            let end = isEnd ? held.count : (held.lastIndex(of: 0x0a).map { $0 + 1 } ?? 0)
            guard held.count - end <= Self.maxLine else {
                throw DownloadError(
                    .tooLarge, "Line \(first) of the program's list is longer than \(Self.maxLine >> 20) MiB.")
            }
            if end > 0 {
                try await take((held[..<end], first))
                first += held[..<end].count { $0 == 0x0a }
                held.removeFirst(end)
            }
            if isEnd { return }
        }
    }

    private func part(at offset: Int) throws(DownloadError) -> [UInt8] {
        var bytes = [UInt8](repeating: 0, count: Self.portion)
        while true {
            let count = bytes.withUnsafeMutableBytes { pread(descriptor, $0.baseAddress, $0.count, off_t(offset)) }
            if count < 0, errno == EINTR { continue }
            guard count >= 0 else {
                throw DownloadError(
                    .disk, "The list of a program cannot be read again.", underlying: String(cString: strerror(errno)))
            }
            bytes.removeLast(bytes.count - count)
            return bytes
        }
    }
}
