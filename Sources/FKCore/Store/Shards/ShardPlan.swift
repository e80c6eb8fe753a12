import FKMiddleware
import Foundation

/// How a list is divided, as its first run recorded it. All later runs use the same division: with another count, two
/// shards could fetch the same file.
package struct ShardPlan: Sendable, Hashable, Codable {
    package var count: Int
    package var numbering: ShardNumbering

    package init(count: Int, numbering: ShardNumbering) {
        self.count = count
        self.numbering = numbering
    }

    private struct File: Codable {
        var format: Int
        var plan: ShardPlan
    }

    /// The file of a barrel's plan.
    ///
    /// - Parameter barrel: nil for lists without a barrel.
    private static func path(_ barrel: String?, in workPath: WorkPath) -> String {
        "\(workPath.shardsFolder)/\(barrel.map { "\($0.barrelFileName).plan" } ?? "plan")"
    }

    /// The recorded plan; nil before the first run.
    ///
    /// - Throws: `.corruptInfo`, `.laterVersion` or `.disk`.
    package static func read(_ barrel: String?, in workPath: WorkPath) throws -> Self? {
        let path = path(barrel, in: workPath)
        let file: File
        do {
            file = try StoreJSON.decode(File.self, from: try FileIO.contents(of: path, limit: 4_096))
        } catch let error as DownloadError where error.code == .notFound {
            return nil
        } catch let error as DownloadError where error.code == .corruptInfo {
            throw DownloadError(
                .corruptInfo,
                "\(path) cannot be understood. Restore it, or delete it: the next run records the number again.")
        }
        guard file.format == 1 else {
            throw DownloadError(.laterVersion, "\(path) has format \(file.format); this program knows 1.")
        }
        let numbering = file.plan.numbering
        guard Shard(1, of: file.plan.count) != nil, numbering.step >= 1, numbering.size >= 1, numbering.first >= 0,
            max(numbering.step, numbering.size, numbering.first) <= Int(Int32.max)
        else {
            throw DownloadError(
                .corruptInfo, "\(path) has impossible numbers. Delete it: the next run records them again.")
        }
        return file.plan
    }

    /// Records the plan of a first run, unless another process has recorded one.
    ///
    /// - Returns: the plan that is recorded now.
    /// - Throws: `.noSpace`, `.disk`, and the errors of `read`.
    package func recordFirst(_ barrel: String?, in workPath: WorkPath) throws -> Self {
        let path = Self.path(barrel, in: workPath)
        let bytes = try StoreJSON.encode(File(format: 1, plan: self))
        let aside = "\(path).\(UUID().uuidString)"
        try bytes.withUnsafeBytes { try FileIO.create(aside, $0) }
        defer { _ = try? FileIO.remove(aside) }
        // A link is made only if the name is free, on network file systems too: one of several first runs succeeds.
        if link(aside, path) == 0 { return self }
        let code = errno
        if code != EEXIST, code != EPERM, code != ENOTSUP, code != ENOSYS {
            throw DownloadError(system: code, "create", path)
        }
        if let known = try Self.read(barrel, in: workPath) { return known }
        // A file system without hard links.
        let descriptor = try FileIO.open(path, O_WRONLY | O_CREAT | O_EXCL)
        try bytes.withUnsafeBytes { try FileIO.write($0, to: descriptor, at: 0, path: path) }
        try FileIO.close(descriptor, written: path)
        return self
    }

    /// Forgets the recorded plan.
    ///
    /// - Throws: `.disk`.
    package static func remove(_ barrel: String?, in workPath: WorkPath) throws {
        try FileIO.remove(path(barrel, in: workPath))
    }

    /// Replaces the recorded plan.
    ///
    /// - Throws: `.noSpace` or `.disk`. The old plan then stays.
    package func replace(_ barrel: String?, in workPath: WorkPath) throws {
        let path = Self.path(barrel, in: workPath)
        let bytes = try StoreJSON.encode(File(format: 1, plan: self))
        try bytes.withUnsafeBytes { try FileIO.replace(path, aside: "\(path).\(UUID().uuidString)", $0) }
    }
}
