import FKMiddleware
import Foundation

/// An existing file that counts as the result, because its name is the one asked for.
extension TaskRun {
    /// Compares an existing file, which is to count as the result, with the task's signature, and with its checksum, or without
    /// one with the digests of its pieces.
    ///
    /// - Throws: `.checksumMismatch` if it differs; `.destination` if it cannot be read; `.cancelled` if the run was
    ///   stopped.
    func compareExisting(
        _ name: String, in folder: Folder, isolation: isolated (any Actor)? = #isolation
    ) async throws(DownloadError) {
        if let signature = entry.record.task.options.signature {
            let path = folder.path(of: name)
            if let fault = try await offThread({ () throws(DownloadError) in try signature.fault(ofFile: path) }) {
                throw refuseExisting(path, fault)
            }
            appendHistory(by: "existing", signature.matchNote)
        }
        guard let checksum = entry.record.task.options.checksum else {
            return try await comparePieces(name, in: folder)
        }
        _ = try folder.fileLength(name)
        let file = try PartFile(reading: name, in: folder)
        let digest = try await read(file) { file throws(DownloadError) in try file.digest(checksum.algorithm) }
        guard digest == checksum.hex else {
            throw refuseExisting(
                folder.path(of: name), "its \(checksum.algorithm.rawValue) is \(digest), not \(checksum.hex)")
        }
        appendHistory(by: "existing", "the finished file has the \(checksum.algorithm.rawValue) asked for")
    }

    private func refuseExisting(_ path: String, _ fault: String) -> DownloadError {
        attempt.refuseExisting()
        return DownloadError(
            .checksumMismatch,
            "\(path) was there already and is not the file expected: \(fault). It stays as it is.",
            remedy: .chooseName)
    }

    private func comparePieces(
        _ name: String, in folder: Folder, isolation: isolated (any Actor)? = #isolation
    ) async throws(DownloadError) {
        let options = entry.record.task.options
        guard let summary = options.pieces else { return }
        let path = folder.path(of: name)
        guard let pieces = PieceDigestFile.read(book.workPath.digestsPath(entry.id), of: summary) else {
            // A signature was compared before.
            guard options.signature == nil else { return }
            throw refuseExisting(path, "the digests of its pieces are lost, add the list again that has them")
        }
        let fault = try await offThread { () throws(DownloadError) in try FileVerifier.fault(of: path, pieces) }
        guard let fault else {
            return appendHistory(by: "existing", "its pieces have the list's \(pieces.algorithm.rawValue)")
        }
        throw refuseExisting(path, fault)
    }
}

extension DownloadError {
    static func fileExists(_ path: String) -> DownloadError {
        DownloadError(
            .fileExists,
            "\(path) exists and was not made by this task.", remedy: .chooseExisting)
    }
}
