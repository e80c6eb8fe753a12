import FKMiddleware
import Foundation

/// The program that makes keys and signatures for tests.
package enum Minisign {
    /// A new key, and its signature of bytes.
    package static func signed(_ bytes: [UInt8]) throws -> (key: SignatureKey, signature: [UInt8]) {
        let folder = try TemporaryFolder()
        _ = try folder.write(bytes, to: "file")
        try Program.run("minisign", ["-G", "-W", "-p", "pub", "-s", "sec"], in: folder.url)
        try Program.run("minisign", ["-S", "-s", "sec", "-m", "file", "-x", "sig"], in: folder.url)
        return (try SignatureKey(contentsOf: folder.file("pub")), try folder.read("sig"))
    }
}
