import FKMiddleware

/// A kind of place that lists files, such as the folders of web servers or the buckets of an object store.
///
/// A source is a value without state: one serves all references of its schemes. It says facts about files
/// (`Manifest.FileFacts`) and nothing else: folders, header fields and logins are the caller's.
///
/// ```swift
/// struct Catalogue: Source {
///     var schemes: [String] { ["catalogue"] }
///     var form: String { "catalogue:NUMBER" }
///
///     func place(of reference: SourceReference, in environment: [String: String]) throws(DownloadError) -> SourcePlace {
///         guard Int(reference.rest) != nil else { throw reference.fault("the number of a record is expected", form) }
///         return SourcePlace(reference, folderName: reference.rest, address: "https://catalogue.example/")
///     }
///
///     func pages(of place: SourcePlace, _ client: SourceClient) -> AsyncThrowingStream<SourcePage, any Error> {
///         client.pages { send in
///             let answer = try await client.get("https://catalogue.example/\(place.reference.rest).txt")
///             let names = String(decoding: answer.bytes, as: UTF8.self).split(separator: "\n")
///             let files = names.map { name in
///                 Manifest.FileFacts(name: String(name), sources: [.init("https://catalogue.example/files/\(name)")])
///             }
///             try await send(SourcePage(files))
///         }
///     }
/// }
/// try downloader.sources.register(Catalogue())
/// ```
public protocol Source: Sendable {
    /// The schemes of its references: lower-case letters, digits, `+`, `-` and `.`, at least two characters.
    var schemes: [String] { get }
    /// How a reference is written, for messages: `s3://BUCKET/PREFIX`.
    var form: String { get }

    /// Checks a reference. It asks no server.
    ///
    /// - Parameters:
    ///   - reference: has one of `schemes`.
    ///   - environment: names endpoints and credentials.
    /// - Throws: `.invalidArgument` for a malformed reference (`SourceReference.fault`), or the error of an endpoint.
    func place(of reference: SourceReference, in environment: [String: String]) throws(DownloadError) -> SourcePlace

    /// Lists the files of a place.
    ///
    /// The caller applies patterns, checks names, and refuses two files of one name. A page is taken before the next one is
    /// asked for, so a source needs memory for one page.
    ///
    /// - Returns: the pages in order. The sequence throws if the place cannot be listed, or if a list is cut off: nothing that came before
    ///   may then be used. A folder below it that cannot be listed is a fault of a page (`SourceFault`).
    func pages(of place: SourcePlace, _ client: SourceClient) -> AsyncThrowingStream<SourcePage, any Error>

    /// The version that the place has now, such as a commit or a release; nil, the default, if it has none.
    ///
    /// - Throws: the errors of `SourceClient.get`.
    func version(of place: SourcePlace, _ client: SourceClient) async throws(DownloadError) -> String?
}

extension Source {
    /// nil: the place has no version.
    public func version(of place: SourcePlace, _ client: SourceClient) async throws(DownloadError) -> String? { nil }
}

/// A place that a source lists.
public struct SourcePlace: Sendable, Hashable {
    /// The reference as the owner has written it.
    public var reference: SourceReference
    /// The name for messages, and the origin of the barrel. The same place always has the same title. The default is
    /// the reference.
    public var title: String
    /// The last part of the reference: the default name of the folder and of the barrel.
    public var folderName: String
    /// The URL of the server that the owner has named. Only its origin may receive the secrets of the owner's options. nil sends them
    /// to no server.
    public var address: String?
    /// True if the source pins each file: a file of another size than the listed one is then refused. False, the default, takes
    /// sizes as information.
    public var pinsFiles: Bool
    /// The URL of the server that is asked first, if it gets no secrets; nil, the default, for `address`.
    var first: String?

    /// Creates a place.
    public init(
        _ reference: SourceReference, title: String? = nil, folderName: String, address: String?,
        pinsFiles: Bool = false
    ) {
        self.reference = reference
        self.title = title ?? reference.description
        self.folderName = folderName
        self.address = address
        self.pinsFiles = pinsFiles
    }
}

/// Files of a source, and what it could not list.
public struct SourcePage: Sendable {
    /// The files. Names are paths below the folder, with `/` between folders. Each file needs a URL.
    public var files: [Manifest.FileFacts]
    /// What was refused, or could not be listed.
    public var faults: [SourceFault]
    /// What was left out and is no fault, by kind, such as `links to other hosts`, with the numbers.
    public var leftOut: [String: Int]
    /// Sentences that the owner should read, such as the list that a folder's digests are from; without a full stop.
    public var notes: [String] = []
    /// The version of the place, such as a commit; nil if it has none, or if another page has it.
    public var version: String?
    /// What the owner's credentials mean for the files of this page and of all others; nil, the default, for nothing.
    package var orders: Orders?
    /// Keys of a program's lines that mean nothing, each once.
    package var leftOutKeys: [String] = []
    /// The form of the list that the files are from; nil for a source without one. Names of a list were checked, and its files need none.
    package var form: Manifest.Form?
    /// What a list says besides its files and faults, at the end of one answer.
    package var list: ServerList?

    /// Creates a page.
    public init(
        _ files: [Manifest.FileFacts] = [], faults: [SourceFault] = [], leftOut: [String: Int] = [:],
        version: String? = nil
    ) {
        self.files = files
        self.faults = faults
        self.leftOut = leftOut
        self.version = version
    }
}

/// A file that was refused, or a part of a place that could not be listed.
public struct SourceFault: Sendable, Hashable {
    /// The name of the file or folder below the place; empty for the place itself.
    public var name: String
    /// The reason, as a clause without a full stop.
    public var reason: String
    /// True if files may be missing from the list, because a part of it could not be read. Nothing is deleted then.
    public var isIncomplete: Bool
    /// The fault with its place in a list; nil if it is of none.
    package var error: ManifestError?

    /// Creates a fault.
    public init(_ name: String, _ reason: String, isIncomplete: Bool) {
        self.name = name
        self.reason = reason
        self.isIncomplete = isIncomplete
    }
}

extension SourcePage {
    /// How the files of a place are asked for. It comes from the owner's reference and credentials, and from no answer of a server.
    package struct Orders: Sendable, Hashable {
        /// The URL whose origin may receive the secrets of the tasks.
        package var address: String
        /// The provider of `AWSSignature` that signs the requests; nil signs none.
        package var signature: String?
        /// Header fields of the requests. They are no secrets.
        package var headers: [HeaderField] = []
        /// Attributes of the tasks, by which a middleware knows them. The default is none.
        package var attributes: [String: String] = [:]
        /// The attribute of tasks that a source of the owner has made, with the scheme of the source: its tokens are for them alone. No list can
        /// set it.
        static let tokenAttribute = "source-token"
        /// The manifest of an artifact; nil for another place.
        package var manifest: RegistryManifestEntry?

        /// Creates orders.
        package init(address: String) { self.address = address }
    }
}
