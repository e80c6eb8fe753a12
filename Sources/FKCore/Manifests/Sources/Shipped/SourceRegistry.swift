import FKCore
import FKEngine
import FKMiddleware
import FKStore
import FKTransport
import Foundation

/// The sources by their schemes.
public final class SourceRegistry: Sendable {
    /// The sources that this library has. Each new one is added here.
    static let shipped: [any Source] = [
        WebFolder(), Buckets(), Registries(), Releases(), ENA(), InternetArchive(), Hubs(), Records(),
    ]

    private let sources: Locked<[String: any Source]>

    /// Creates a registry with the shipped sources.
    public init() {
        var known: [String: any Source] = [:]
        for source in Self.shipped { for scheme in source.schemes { known[scheme] = source } }
        sources = Locked(known)
    }

    /// True if no source of the library, and no other name of the library, has the scheme.
    func isFree(_ scheme: String) -> Bool {
        self[scheme] == nil && !["file", "ftp"].contains(scheme)
    }

    /// Registers the programs of a work path.
    ///
    /// - Throws: the errors of `SourceProgram.List.init`.
    package func registerPrograms(in workPath: WorkPath) throws(DownloadError) {
        let list = try SourceProgram.List(in: workPath)
        for program in list.programs where isFree(program.scheme) {
            try register(ProgramSource(program, isTrusted: list.isTrusted(program)))
        }
    }

    /// Registers a source. It replaces those that have one of its schemes.
    ///
    /// - Throws: `.invalidArgument` for a scheme that no reference can have.
    public func register(_ source: any Source) throws(DownloadError) {
        for scheme in source.schemes where !SourceReference.isScheme(scheme[...]) || scheme != scheme.lowercased() {
            throw DownloadError(
                .invalidArgument,
                "'\(scheme.visible)' cannot be the scheme of a source: use 2 to 32 lower-case letters, digits, '+', '-' and "
                    + "'.', with a letter first.")
        }
        sources.withLock { for scheme in source.schemes { $0[scheme] = source } }
    }

    /// Removes the source of a scheme. It does nothing if there is none.
    public func remove(scheme: String) { sources.withLock { $0[scheme] = nil } }

    /// The schemes in alphabetical order.
    public var schemes: [String] { sources.withLock(\.keys).sorted() }

    /// The source of a scheme; nil without one.
    public subscript(scheme: String) -> (any Source)? { sources.withLock { $0[scheme] } }

    /// True if the source of a scheme is a program of the owner.
    package func isProgram(_ scheme: String) -> Bool { self[scheme] is ProgramSource }

    /// The place that a text names, with its source; nil for a text without a scheme, such as a path.
    ///
    /// - Throws: `.unsupportedScheme` for an unknown scheme, with the schemes that there are; the error of the source.
    package func find(
        _ text: String, in environment: [String: String]
    ) throws(DownloadError) -> (source: any Source, place: SourcePlace)? {
        guard let reference = SourceReference(text) else { return nil }
        guard let source = self[reference.scheme] else {
            throw DownloadError(
                .unsupportedScheme,
                "There is no source for '\(reference.scheme):'. The schemes are \(schemes.joined(separator: ", ")).")
        }
        return (source, try source.place(of: reference, in: environment))
    }
}

extension ListedPlace {
    /// The place that a text names; nil for a text without a scheme.
    ///
    /// - Throws: same as `SourceRegistry.find`.
    package init?(
        _ text: String, in registry: SourceRegistry, _ environment: [String: String]
    ) throws(DownloadError) {
        guard let (source, place) = try registry.find(text, in: environment) else { return nil }
        self.init(source, place, environment)
    }
}

extension SourceProgram.List {
    /// Adds a program, or lets the same one run that came with a copy of the work path.
    ///
    /// - Returns: false if it is there already, with the same settings, and may run.
    /// - Throws: `.invalidArgument` if the scheme has another program, or one of the library, or if there are too many.
    package mutating func add(_ program: SourceProgram) throws(DownloadError) -> Bool {
        guard SourceRegistry().isFree(program.scheme) else {
            throw DownloadError(
                .invalidArgument, "The scheme '\(program.scheme)' has a source already. Choose another one.")
        }
        return try append(program)
    }
}

extension Downloader {
    /// The sources that `listing` knows.
    public var sources: SourceRegistry { value(of: SourceRegistry.self) { SourceRegistry() } }

    /// The files of a place, such as `https://host/pub/` or `s3://bucket/prefix`.
    ///
    /// ```swift
    /// let listing = try await downloader.listing(of: "https://host/pub/", include: ["*.iso"])
    /// for try await page in listing.pages {
    ///     for file in page.files {
    ///         try await downloader.add(Builder(Manifest.Entry(file), in: folder))
    ///     }
    /// }
    /// ```
    ///
    /// Its requests follow the policies of hosts (`Configure.hosts`).
    ///
    /// - Parameters:
    ///   - reference: `SCHEME:REST` with a scheme of `sources`.
    ///   - choice: the files to take, and the depth.
    ///   - options: the options for the connection. Secrets among them go to the origin of the reference alone.
    ///   - environment: names endpoints and credentials; the default is that of the process.
    /// - Throws: `.invalidArgument` or `.unsupportedScheme` for a reference that cannot be used. No server was asked then.
    public func listing(
        of reference: String, _ choice: SourceChoice = SourceChoice(), options: TaskOptions = TaskOptions(),
        environment: [String: String] = ProcessInfo.processInfo.environment
    ) async throws(DownloadError) -> SourceListing {
        guard let (source, place) = try sources.find(reference, in: environment) else {
            throw DownloadError(
                .invalidArgument,
                "'\(reference.visible)' names no place to list. The schemes are "
                    + "\(sources.schemes.joined(separator: ", ")).")
        }
        let transport = try PacedTransport(await configure)
        return SourceListing(
            source, place, choice, options, environment, over: transport, owns: true)
    }
}
