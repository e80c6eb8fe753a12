import Foundation

/// Compares the digest of each finished file with the one it must have.
///
/// ```swift
/// chains.register(response: ChecksumMiddleware([url: try Checksum(parsing: "sha-256=2cf2…")]))
/// // or: the digest travels with the task, as builder attribute ".sha256"
/// chains.register(response: ChecksumMiddleware(retries: true))
/// ```
///
/// A file without a known digest passes. After a failure of the task itself there is no file and nothing to do.
public struct ChecksumMiddleware: ResponseMiddleware {
    /// Gives the digest a task's file must have; nil lets the file pass.
    public typealias Lookup = @Sendable (TaskContext) async throws -> Checksum?

    /// Position in the chain.
    public let priority: Int
    /// True to have a damaged file fetched again, within the task's number of attempts, instead of failing the task.
    public let retries: Bool
    private let lookup: Lookup

    /// - Parameters:
    ///   - priority: position in the chain; 50 by default, so that a file is checked before the others move it.
    ///   - lookup: by default reads the task's attributes `.md5`, `.sha1`, `.sha256`, `.sha384`, `.sha512`, the strongest one
    ///     there is.
    public init(retries: Bool = false, priority: Int = 50, lookup: @escaping Lookup = ChecksumMiddleware.fromAttributes)
    {
        self.retries = retries
        self.priority = priority
        self.lookup = lookup
    }

    /// Digests by the URL the task was built with.
    public init(_ checksums: [URL: Checksum], retries: Bool = false, priority: Int = 50) {
        self.init(retries: retries, priority: priority) { checksums[$0.originalURL] }
    }

    /// Reads the digest from the task's attributes.
    ///
    /// - Throws: `.invalidArgument` for an attribute that is not a digest.
    @Sendable public static func fromAttributes(_ task: TaskContext) async throws -> Checksum? {
        for algorithm in Checksum.Algorithm.allCases.reversed() {
            let key = "." + algorithm.rawValue.filter { $0 != "-" }
            if let hex = task.attributes[key] { return try Checksum(algorithm, hex: hex) }
        }
        return nil
    }

    /// - Throws: `.checksumMismatch` naming both digests, or `RetryRequest` with `retries`; what `lookup` throws;
    ///   the system's error when the file cannot be read.
    public func process(_ response: DownloadResponse) async throws -> DownloadResponse {
        guard response.error == nil, let file = response.fileURL, let expected = try await lookup(response.task) else {
            return response
        }
        let actual = try Digester.hex(ofFile: file, expected.algorithm)
        guard actual == expected.hex else {
            let text = "The file's \(expected.algorithm.rawValue) digest is \(actual), expected \(expected.hex)."
            if retries { throw RetryRequest(reason: text) }
            throw DownloadError(
                .checksumMismatch, text, url: URLMasking.mask(response.task.originalURL.absoluteString))
        }
        return response
    }
}
