import FKCore
import FKManifests
import FKMiddleware
import Foundation

/// The checksum list of `--checksum @FILE` or `--checksum @URL`, or for `--checksum auto` the lists beside the files. It
/// has the names of the files with their digests.
struct DigestList: Sendable {
    /// The path or the URL; nil looks beside each file.
    private let place: String?
    private let arguments: ParsedArguments

    /// The longest list, in bytes.
    private static let limit = 64 << 20

    /// The value that looks beside each file.
    static let auto = "auto"

    /// True if `--checksum` has a list and not a digest.
    static func isOne(_ arguments: ParsedArguments) -> Bool {
        arguments["checksum"].map { $0.utf8.first == UInt8(ascii: "@") || $0 == auto } ?? false
    }

    /// Reads the option; nil if it has no list.
    ///
    /// - Parameter isOfSeveral: true if there is a list of files as well, which has digests of its own.
    init?(_ arguments: ParsedArguments, _ context: CommandContext, isOfSeveral: Bool) throws {
        guard Self.isOne(arguments), let text = arguments["checksum"] else { return nil }
        guard !isOfSeveral else {
            throw arguments.error("--checksum describes URLs of the command line. A list (-i) can say it for each.")
        }
        place = text == Self.auto ? nil : String(text.dropFirst())
        self.arguments = arguments
        guard place?.isEmpty != true else { throw arguments.error("--checksum: a path or URL follows the @.") }
    }

    /// Gives each task the digest of its file.
    ///
    /// - Throws: `UsageError` for a list that cannot be read, or does not name a file; `CommandFailure` if there is no list
    ///   beside a file; the error of the request for it.
    func apply(
        to tasks: inout [TaskDescription], _ options: TaskOptions, _ signature: SignatureOptions?,
        _ context: CommandContext, over transport: any Transport
    ) async throws {
        guard let place else {
            var read = ExactText.Map<Result<Digests, any Error>>()
            for index in tasks.indices {
                try await look(for: &tasks[index], signature, &read, context, over: transport)
            }
            return
        }
        let shown = (NearbyFile.isURL(place) ? place.masked : place).visible
        let digests: Digests
        do {
            // The list may be on the server of any of the files.
            let subject = tasks.first { URLOrigin($0.url) == URLOrigin(place) } ?? tasks.first
            digests = try await self.digests(of: place, subject?.url, options, signature, over: transport)
        } catch let error as ManifestError {
            throw arguments.error("--checksum: \(ListInput.Fault(shown, error).description)")
        }
        for index in tasks.indices {
            let name = tasks[index].fileName ?? FileNameRules.name(url: tasks[index].url, head: nil)
            do throws(EntryFault) { _ = try digests.give(&tasks[index], as: name) } catch {
                throw arguments.error("--checksum: \(shown) \(error.reason.visible).")
            }
        }
    }

    /// Asks for the lists beside a file, one after the other, until one has the file's name.
    private func look(
        for task: inout TaskDescription, _ signature: SignatureOptions?,
        _ read: inout ExactText.Map<Result<Digests, any Error>>, _ context: CommandContext,
        over transport: any Transport
    ) async throws {
        let name = FileNameRules.name(url: task.url, head: nil)
        var looked: [String] = []
        for place in Self.candidates(beside: task.url) {
            let shown = place.masked
            do {
                // Files of one folder share its lists.
                if read[place] == nil {
                    do {
                        read[place] = .success(
                            try await digests(of: place, task.url, task.options, signature, over: transport))
                    } catch { read[place] = .failure(error) }
                }
                guard let checksum = try read[place]?.get().give(&task, as: name) else { continue }
                return context.errors.writeLine(
                    "fk: \("\(name): the \(checksum.algorithm.rawValue) digest is from \(shown)".visible)")
            } catch let error as DownloadError {
                guard let status = error.status, [401, 403, 404, 410].contains(status) else { throw error }
                looked.append("\(shown) (HTTP \(status))")
            } catch is ManifestError {
                looked.append("\(shown) (is no checksum list)")
            } catch let error as EntryFault {
                looked.append("\(shown) (\(error.reason))")
            }
        }
        throw CommandFailure(
            "--checksum auto: there is no digest of \(task.url.masked.visible). Nothing was fetched; looked "
                + "for: \(looked.joined(separator: ", ").visible)", status: ExitStatus.taskFailed)
    }

    /// The places of lists with digests of a file: named after it, then in its folder.
    static func candidates(beside url: String) -> [String] {
        let path = url.prefix { $0 != "?" && $0 != "#" }
        let folder = url.urlFolder
        return [".sha256", ".sha512"].map { NearbyFile.adding($0, to: url) }
            + ["SHA256SUMS", "sha256sum.txt"].map { folder + $0 + url[path.endIndex...] }
    }

    private func digests(
        of place: String, _ subject: String?, _ options: TaskOptions, _ signature: SignatureOptions?,
        over transport: any Transport
    ) async throws -> Digests {
        let isURL = NearbyFile.isURL(place)
        let packed =
            isURL
            ? try await NearbyFile.fetch(place, beside: subject, options, limit: Self.limit, over: transport)
            : try local(place)
        let signer = try await signature?.prove(packed, of: place, options, over: transport)
        // A list with a single digest belongs to the file that the list is named after.
        var fileName = isURL ? FileNameRules.name(url: place, head: nil) : place
        var bytes = packed
        if let unpacker = Unpacker(packed) {
            do { bytes = try unpacker.unpacked(packed, limit: 1 << 30) } catch let fault as Unpacker.Fault {
                throw arguments.error("--checksum: \(place.masked.visible): \(fault.reason).")
            }
            fileName = unpacker.plainName(fileName)
        }
        return Digests(
            try Manifest(parsing: bytes, as: .checksums, fileName: fileName), of: ListOrigin(place, signer: signer))
    }

    /// The digests of a list by name.
    private struct Digests {
        private var digests = ExactText.Map<Checksum>()
        /// The names in the list, by their last parts.
        private var names = ExactText.Map<[String]>()
        private let list: ListOrigin

        init(_ manifest: Manifest, of list: ListOrigin) {
            self.list = list
            for entry in manifest.entries {
                let ofURL = entry.sources.first.map { FileNameRules.name(url: $0.url, head: nil) }
                guard let name = entry.name ?? ofURL, let checksum = entry.checksum else { continue }
                digests[name] = checksum
                names[Paths.split(name).name, default: []].append(name)
            }
        }

        /// Gives a task the digest of the file with this name.
        func give(_ task: inout TaskDescription, as name: String) throws(EntryFault) -> Checksum {
            let path = task.fileName == nil ? Self.path(of: task.url) : name
            guard let found = try find(name, at: path), let checksum = digests[found] else {
                throw EntryFault("has no digest of '\(name)'")
            }
            task.options.checksum = checksum
            task.options.list = list
            return checksum
        }

        /// The name in the list. Of several files with the same last part, it is the one whose folders the file is in as well; a
        /// file of another folder is no twin.
        private func find(_ name: String, at path: String) throws(EntryFault) -> String? {
            let all = names[name] ?? []
            if all.count < 2 { return all.first }
            let ending = all.filter {
                path.isExactly($0) || path.utf8.reversed().starts(with: "/\($0)".utf8.reversed())
            }
            guard let best = ending.max(by: { $0.utf8.count < $1.utf8.count }) else {
                throw EntryFault("has several files named '\(name)'")
            }
            return best
        }

        /// The decoded path of a URL, without its query.
        private static func path(of url: String) -> String {
            let path = url.prefix { $0 != "?" && $0 != "#" }
            return path.percentDecoded ?? String(path)
        }
    }

    /// Reads a local list, which may be a pipe. It reads no more than one byte beyond the limit.
    private func local(_ place: String) throws -> [UInt8] {
        let descriptor = open(place, O_RDONLY | O_CLOEXEC)
        guard descriptor >= 0 else { throw unreadable(place) }
        defer { close(descriptor) }
        var bytes: [UInt8] = []
        let chunk = UnsafeMutableRawBufferPointer.allocate(byteCount: 1 << 16, alignment: 16)
        defer { chunk.deallocate() }
        while true {
            let count = Glue.read(descriptor, chunk)
            if count < 0 { throw unreadable(place) }
            if count == 0 { return bytes }
            bytes += UnsafeRawBufferPointer(rebasing: chunk[..<count])
            guard bytes.count <= Self.limit else {
                throw arguments.error(
                    "--checksum: \(place.visible) is longer than \(Self.limit >> 20) MiB: is it a checksum list?"
                )
            }
        }
    }

    private func unreadable(_ place: String) -> UsageError {
        arguments.error("--checksum: \(place.visible) cannot be read: \(String(cString: strerror(errno))).")
    }
}

extension Checksum {
    /// Parses `ALG=HEX`, `ALG:HEX`, or `HEX` alone, whose length says which.
    ///
    /// - Throws: `.invalidArgument` for any other text.
    init(given text: String) throws(DownloadError) {
        let name = text.prefix { $0 != ":" }
        if text.contains("=") || name.count < text.count && Algorithm(name: String(name)) != nil {
            self = try Checksum(parsing: text)
            return
        }
        guard let algorithm = Algorithm(digits: text.utf8.count), text.utf8.count == text.count,
            text.allSatisfy(\.isHexDigit)
        else {
            throw DownloadError(
                .invalidArgument,
                "A checksum is ALG=HEX, or HEX of 32, 40, 56, 64, 96 or 128 digits, @LIST with the path or URL of a checksum "
                    + "list, auto, or none.")
        }
        self = try Checksum(algorithm, hex: text)
    }
}
