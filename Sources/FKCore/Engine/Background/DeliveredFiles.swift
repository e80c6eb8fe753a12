import FKMiddleware
import Foundation

/// The pieces that were delivered and not used yet: `<work path>/delivered/<key>.body` and `.head`.
///
/// The head is written first, so a body always has one. Nothing is synced: after a power cut, a piece that is missing
/// or shorter than announced is requested again.
struct DeliveredFiles: Sendable {
    let folder: String

    init(_ workPath: WorkPath) { folder = workPath.deliveredFolder }

    /// The largest head that is read: the limits of transports are lower.
    private static let maxHead = 1 << 20

    func bodyPath(_ key: PieceKey) -> String { "\(folder)/\(key).body" }
    private func headPath(_ key: PieceKey) -> String { "\(folder)/\(key).head" }

    /// Moves a file here.
    ///
    /// - Throws: `.notFound` if it is missing; `.noSpace` or `.disk`.
    func keep(_ file: String, of key: PieceKey, head: ResponseHead) throws -> Delivery {
        try FileIO.makeFolder(folder)
        let bytes = try StoreJSON.encode(head)
        try bytes.withUnsafeBytes { try FileIO.replace(headPath(key), aside: headPath(key) + ".new", $0) }
        do {
            try FileIO.rename(file, to: bodyPath(key))
        } catch let error as DownloadError where error.code != .notFound {
            // The container of an application group is on the same file system, but another implementation need not be.
            try copy(file, to: bodyPath(key))
        }
        guard let length = length(of: bodyPath(key)) else { throw DownloadError(system: ENOENT, "read", bodyPath(key)) }
        return Delivery(key: key, head: head, length: length)
    }

    private func copy(_ file: String, to path: String) throws {
        let aside = path + ".new"
        _ = try? FileIO.remove(aside)
        try FileManager.default.copyItem(atPath: file, toPath: aside)
        try FileIO.rename(aside, to: path)
    }

    /// Removes a piece.
    func remove(_ key: PieceKey) {
        // In this order, so that a body always has a head.
        for path in [bodyPath(key), headPath(key)] { _ = try? FileIO.remove(path) }
    }

    /// Reads all pieces, and removes what an interrupted move has left.
    func all() -> [Delivery] {
        guard let names = try? FileIO.names(in: folder) else { return [] }
        var found: [Delivery] = []
        for name in names {
            let parts = name.split(separator: ".", omittingEmptySubsequences: false)
            let key = PieceKey(parts.dropLast().joined(separator: "."))
            if let key, parts.last == "body", let delivery = read(key) {
                found.append(delivery)
            } else if let key, parts.last == "head", length(of: bodyPath(key)) != nil {
                continue
            } else {
                _ = try? FileIO.remove("\(folder)/\(name)")
            }
        }
        return found
    }

    private func read(_ key: PieceKey) -> Delivery? {
        guard let bytes = try? FileIO.contents(of: headPath(key), limit: Self.maxHead),
            let head = try? StoreJSON.decode(ResponseHead.self, from: bytes), let length = length(of: bodyPath(key))
        else { return nil }
        return Delivery(key: key, head: head, length: length)
    }

    /// The length of a regular file; nil without one.
    func length(of path: String) -> Int64? {
        var status = stat()
        guard lstat(path, &status) == 0, status.st_mode & S_IFMT == S_IFREG else { return nil }
        return Int64(status.st_size)
    }
}
