import FKCore
import FKMiddleware
import Foundation

/// The file with the secret of the RPC.
package enum SecretFile {
    /// The name of the file in the work path.
    package static let name = "rpc-secret"

    /// Reads the secret: the first line, without its end.
    ///
    /// - Throws: `.invalidArgument` for an empty one, or the error of the file.
    package static func read(_ path: String) throws -> String {
        var line = try FileIO.contents(of: path, limit: 65_536, isOwn: false).prefix { $0 != 0x0a }
        if line.last == 0x0d { line = line.dropLast() }
        guard !line.isEmpty, let secret = String(validating: line, as: UTF8.self) else {
            throw DownloadError(
                .invalidArgument, "The first line of \(path) is empty or no text: write the secret there.")
        }
        return secret
    }

    /// Reads the secret of a work path. The first time it makes one, which only the user can read.
    ///
    /// - Returns: the secret, and true if it is new.
    /// - Throws: the error of the file.
    package static func readOrMake(in workPath: String) throws -> (secret: String, isNew: Bool) {
        let path = "\(workPath)/\(name)"
        do {
            return (try read(path), false)
        } catch let error as DownloadError where error.code == .notFound {
            var random = SystemRandomNumberGenerator()
            let secret = (0..<16).map { _ in Digester.hex([UInt8.random(in: 0...255, using: &random)]) }.joined()
            do {
                try Array("\(secret)\n".utf8).withUnsafeBytes { try FileIO.create(path, $0) }
                return (secret, true)
            } catch let error as DownloadError where error.code == .fileExists {
                // Another process was faster.
                return (try read(path), false)
            }
        }
    }
}
