import Foundation

/// Compares the digest of each finished file with the expected one.
///
/// ```swift
/// chains.register(response: ChecksumMiddleware([url: try Checksum(parsing: "sha-256=2cf2…")]))
/// // or: the digest is an attribute of the task, for example ".sha256"
/// chains.register(response: ChecksumMiddleware(retries: true))
/// ```
///
/// A file without a known digest passes. A failed task is ignored, because it has no file.
public struct ChecksumMiddleware: ResponseMiddleware {
    /// Returns the digest that a task's file must have; nil accepts any file.
    public typealias Lookup = @Sendable (TaskContext) async throws -> Checksum?

    /// The position in the chain. The default is 50.
    public let priority: Int
    /// True to fetch a damaged file again, within the task's limit of attempts, instead of failing the task. The
    /// default is false.
    public let retries: Bool
    private let lookup: Lookup

    /// Creates the middleware with a lookup of digests.
    ///
    /// - Parameters:
    ///   - retries: true fetches a damaged file again; the default is false.
    ///   - priority: the position in the chain; the default is 50, so that a file is checked before others move it.
    ///   - lookup: the default reads the task's attributes `.md5`, `.sha1`, `.sha224`, `.sha256`, `.sha384` and
    ///     `.sha512` and takes the strongest one.
    public init(retries: Bool = false, priority: Int = 50, lookup: @escaping Lookup = ChecksumMiddleware.fromAttributes)
    {
        self.retries = retries
        self.priority = priority
        self.lookup = lookup
    }

    /// Creates the middleware with a table of digests. Its keys are the URLs that the tasks were created with.
    public init(_ checksums: [URL: Checksum], retries: Bool = false, priority: Int = 50) {
        self.init(retries: retries, priority: priority) { checksums[$0.originalURL] }
    }

    /// Reads the digest from the task's attributes; nil if there is none.
    ///
    /// - Throws: `.invalidArgument` for an attribute that is not a valid digest.
    @Sendable public static func fromAttributes(_ task: TaskContext) async throws -> Checksum? {
        for algorithm in Checksum.Algorithm.usual.reversed() {
            let key = "." + algorithm.plainName
            if let hex = task.attributes[key] { return try Checksum(algorithm, hex: hex) }
        }
        return nil
    }

    /// Returns the response unchanged when the digest matches or none is expected.
    ///
    /// - Throws: `.checksumMismatch` with both digests, or `RetryRequest` if `retries` is true; the error of
    ///   `lookup`; the system's error when the file cannot be read.
    public func process(_ response: DownloadResponse) async throws -> DownloadResponse {
        guard response.error == nil, let file = response.fileURL, let expected = try await lookup(response.task) else {
            return response
        }
        let actual = try Digester.hex(ofFile: file, expected.algorithm)
        guard actual == expected.hex else {
            let text = "The file's \(expected.algorithm.rawValue) digest is \(actual), expected \(expected.hex)."
            if retries { throw RetryRequest(reason: text) }
            throw DownloadError(.checksumMismatch, text, url: response.task.originalURL.absoluteString.masked)
        }
        return response
    }
}
