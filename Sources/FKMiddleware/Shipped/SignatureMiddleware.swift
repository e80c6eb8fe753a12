import Foundation

/// Refuses finished files that a key has not signed.
///
/// ```swift
/// let key = try SignatureKey(contentsOf: URL(fileURLWithPath: "minisign.pub"))
/// chains.register(response: SignatureMiddleware(key, [url: signature]))
/// ```
///
/// A response middleware sees a file that has its name already, and a refused file loses it. `TaskOptions.signature` verifies
/// the file before it gets its name.
public struct SignatureMiddleware: ResponseMiddleware {
    /// Returns the contents of the signature's file for a task; nil if there is none.
    public typealias Lookup = @Sendable (TaskContext) async throws -> [UInt8]?

    /// The position in the chain. The default is 50.
    public let priority: Int
    private let key: SignatureKey
    private let lookup: Lookup

    /// Creates the middleware with a lookup of signatures.
    ///
    /// - Parameters:
    ///   - priority: the position in the chain; the default is 50, so that a file is verified before others move it.
    ///   - lookup: a file without a signature is refused.
    public init(_ key: SignatureKey, priority: Int = 50, lookup: @escaping Lookup) {
        self.key = key
        self.priority = priority
        self.lookup = lookup
    }

    /// Creates the middleware with a table of signatures. Its keys are the URLs that the tasks were created with.
    public init(_ key: SignatureKey, _ signatures: [URL: [UInt8]], priority: Int = 50) {
        self.init(key, priority: priority) { signatures[$0.originalURL] }
    }

    /// Returns the response unchanged if the key has signed the file.
    ///
    /// - Throws: `.checksumMismatch` if it has not, or if there is no signature; `.invalidArgument` if the program for this
    ///   kind of signature is not installed; the error of `lookup`.
    public func process(_ response: DownloadResponse) async throws -> DownloadResponse {
        guard response.error == nil, let file = response.fileURL else { return response }
        guard let signature = try await lookup(response.task) else {
            throw SignatureKey.Fault("there is no signature of it").error(of: file.path)
        }
        do throws(SignatureKey.Fault) { _ = try key.prove(signature, .file(file.path)) } catch {
            throw error.error(of: file.path)
        }
        return response
    }
}
