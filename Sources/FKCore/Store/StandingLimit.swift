import FKMiddleware

/// The rate limit over all tasks of a work path, set by `fk limit`. It lasts until it is changed, whichever process
/// runs the engine. It is a small JSON file, `limits`, replaced as a whole; without it there is no limit.
package enum StandingLimit {
    private struct File: Codable {
        var format: Int
        var rateLimit: Int64?
    }

    /// Bytes per second, at least 1; nil for no limit.
    ///
    /// - Throws: `.corruptInfo`, `.laterVersion` or `.disk`.
    package static func read(in workPath: WorkPath) throws -> Int64? {
        let file: File
        do {
            file = try StoreJSON.decode(File.self, from: try FileIO.contents(of: workPath.limitsPath, limit: 4_096))
        } catch let error as DownloadError where error.code == .notFound {
            return nil
        }
        guard file.format == 1 else {
            throw DownloadError(
                .laterVersion, "\(workPath.limitsPath) has format \(file.format); this program knows 1.")
        }
        return file.rateLimit.flatMap { $0 > 0 ? $0 : nil }
    }

    /// Sets the limit; nil removes it.
    ///
    /// - Throws: `.noSpace` or `.disk`. The limit is then unchanged.
    package static func write(_ rateLimit: Int64?, in workPath: WorkPath) throws {
        guard let rateLimit else {
            try FileIO.remove(workPath.limitsPath)
            return
        }
        let bytes = try StoreJSON.encode(File(format: 1, rateLimit: rateLimit))
        try bytes.withUnsafeBytes {
            try FileIO.replace(workPath.limitsPath, aside: workPath.limitsPath + ".new", $0)
        }
    }
}
