import FKCore
import FKManifests
import FKMiddleware
import Foundation

/// The checksum list of `--checksum @FILE` or `--checksum @URL`. It has the names of the files with their digests.
struct DigestList: Sendable {
    /// The path or the URL.
    let place: String
    private let arguments: ParsedArguments

    /// The longest list, in bytes.
    private static let limit = 64 << 20

    /// True if `--checksum` has a list and not a digest.
    static func isOne(_ arguments: ParsedArguments) -> Bool { arguments["checksum"]?.utf8.first == UInt8(ascii: "@") }

    /// Reads the option; nil if it has no list.
    ///
    /// - Parameter isOfSeveral: true if there is a list of files as well, which has digests of its own.
    init?(_ arguments: ParsedArguments, _ context: CommandContext, isOfSeveral: Bool) throws {
        guard Self.isOne(arguments), let text = arguments["checksum"] else { return nil }
        guard !isOfSeveral else {
            throw arguments.error("--checksum describes URLs of the command line. A list (-i) can say it for each.")
        }
        place = String(text.dropFirst())
        self.arguments = arguments
        guard !place.isEmpty else { throw arguments.error("--checksum: a path or URL follows the @.") }
    }

    /// Gives each task the digest of its file.
    ///
    /// - Throws: `UsageError` for a list that cannot be read, or does not name a file; the error of the request for it.
    func apply(
        to tasks: inout [TaskDescription], _ options: TaskOptions, _ signature: SignatureOptions?
    ) async throws {
        let manifest: Manifest
        do {
            let bytes = try await bytes(options, sameOriginAs: tasks.first?.url)
            try await signature?.prove(bytes, of: place, options)
            manifest = try Manifest(parsing: bytes, as: .checksums, fileName: fileName)
        } catch let error as ManifestError {
            throw arguments.error("--checksum: \(ListInput.Fault(Escaping.visible(place), error).description)")
        }
        var digests = ExactMap<Checksum>()
        var lasts = ExactMap<Int>()
        for entry in manifest.entries {
            guard let name = entry.name, let checksum = entry.checksum else { continue }
            digests[name] = checksum
            let last = Paths.split(name).name
            lasts[last, default: 0] += 1
            // A name in a folder counts if it is the only one that ends so.
            if !last.isExactly(name), digests[last] == nil { digests[last] = checksum }
        }
        for index in tasks.indices {
            let name = tasks[index].fileName ?? FileNameRules.name(url: tasks[index].url, head: nil)
            guard let checksum = digests[name] else {
                throw arguments.error(
                    "--checksum: \(Escaping.visible(place)) has no digest of '\(Escaping.visible(name))'.")
            }
            guard lasts[name, default: 0] < 2 else {
                throw arguments.error(
                    "--checksum: \(Escaping.visible(place)) has several files named '\(Escaping.visible(name))'.")
            }
            tasks[index].options.checksum = checksum
        }
    }

    private var isURL: Bool { InputURL.fault(in: place) == nil }

    /// A list with a single digest belongs to the file that the list is named after.
    private var fileName: String { isURL ? FileNameRules.name(url: place, head: nil) : place }

    /// Reads a local list, which may be a pipe. It reads no more than one byte beyond the limit.
    private func local() throws -> [UInt8] {
        let descriptor = open(place, O_RDONLY | O_CLOEXEC)
        guard descriptor >= 0 else { throw unreadable() }
        defer { close(descriptor) }
        var bytes: [UInt8] = []
        let chunk = UnsafeMutableRawBufferPointer.allocate(byteCount: 1 << 16, alignment: 16)
        defer { chunk.deallocate() }
        while true {
            let count = Glue.read(descriptor, chunk)
            if count < 0 { throw unreadable() }
            if count == 0 { return bytes }
            bytes += UnsafeRawBufferPointer(rebasing: chunk[..<count])
            guard bytes.count <= Self.limit else {
                throw arguments.error(
                    "--checksum: \(Escaping.visible(place)) is longer than \(Self.limit >> 20) MiB: is it a checksum list?"
                )
            }
        }
    }

    private func unreadable() -> UsageError {
        arguments.error("--checksum: \(Escaping.visible(place)) cannot be read: \(String(cString: strerror(errno))).")
    }

    private func bytes(_ options: TaskOptions, sameOriginAs first: String?) async throws -> [UInt8] {
        guard isURL else {
            return try local()
        }
        let transport = try TransportKind.automatic.makeTransport()
        defer { transport.shutdown() }
        var request = DocumentRequest(url: try URLNormalizer.normalize(place), options: options)
        // The header fields of -H may be secrets of the file's server.
        if let first, URLOrigin(first) == URLOrigin(request.url) {
            request.headers = options.headers ?? []
            request.secretHeaders = Set((options.secretHeaders ?? []).map { $0.lowercased() })
        }
        request.limit = Self.limit
        return try await request.fetch(over: transport).bytes ?? []
    }
}

extension Checksum {
    /// Parses `ALG=HEX`, or `HEX` alone, whose length says which.
    ///
    /// - Throws: `.invalidArgument` for any other text.
    init(given text: String) throws(DownloadError) {
        guard !text.contains("=") else {
            self = try Checksum(parsing: text)
            return
        }
        guard let algorithm = Algorithm(digits: text.utf8.count), text.utf8.count == text.count,
            text.allSatisfy(\.isHexDigit)
        else {
            throw DownloadError(
                .invalidArgument,
                "A checksum is ALG=HEX, or HEX of 32, 40, 56, 64, 96 or 128 digits, or @LIST with the path or URL of a "
                    + "checksum list.")
        }
        self = try Checksum(algorithm, hex: text)
    }
}
