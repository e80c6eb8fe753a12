import FKMiddleware
import Foundation

/// An existing file that counts as the result, because its name is the one asked for.
extension TaskRun {
    /// Compares an existing file, which is to count as the result, with the task's checksum, or without one with the digests of
    /// its pieces.
    ///
    /// - Throws: `.checksumMismatch` if it differs; `.destination` if it cannot be read; `.cancelled` if the run was
    ///   stopped.
    func compareExisting(
        _ name: String, in folder: Folder, isolation: isolated (any Actor)? = #isolation
    ) async throws(DownloadError) {
        guard let checksum = entry.record.task.options.checksum else {
            return try await comparePieces(name, in: folder)
        }
        _ = try folder.fileLength(name)
        let file = try PartFile(reading: name, in: folder)
        let digest = try await read(file) { file throws(DownloadError) in try file.digest(checksum.algorithm) }
        guard digest != checksum.hex else { return appendHistory(by: "existing", checksum.matchNote) }
        attempt.refuseExisting()
        throw DownloadError(
            .checksumMismatch,
            "\(folder.path(of: name)) was there already and is not the file expected: its "
                + "\(checksum.algorithm.rawValue) is \(digest), not \(checksum.hex). It stays as it is.",
            remedy: .chooseName)
    }

    private func comparePieces(
        _ name: String, in folder: Folder, isolation: isolated (any Actor)? = #isolation
    ) async throws(DownloadError) {
        let options = entry.record.task.options
        guard let summary = options.pieces,
            let pieces = PieceDigestFile.read(book.workPath.digestsPath(entry.id), of: summary)
        else { return }
        let path = folder.path(of: name)
        let fault = try await offThread { () throws(DownloadError) in try FileVerifier.fault(of: path, pieces) }
        guard let fault else {
            return appendHistory(by: "existing", "its pieces have the list's \(pieces.algorithm.rawValue)")
        }
        attempt.refuseExisting()
        throw DownloadError(
            .checksumMismatch,
            "\(path) was there already and is not the file expected: \(fault). It stays as it is.",
            remedy: .chooseName)
    }
}

extension DownloadError {
    static func fileExists(_ path: String) -> DownloadError {
        DownloadError(
            .fileExists,
            "\(path) exists and was not made by this task.", remedy: .chooseExisting)
    }
}

extension Checksum {
    /// The line of the history for a finished or existing file that has this checksum.
    var matchNote: String { "the finished file has the \(algorithm.rawValue) asked for" }
}
