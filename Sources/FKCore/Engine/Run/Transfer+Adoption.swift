import FKMiddleware
import Foundation

/// Another program's partial file, whose bytes a task takes over.
extension Transfer {
    /// The path of the file to take over; nil without one, and if the task has bytes of its own or has read the file already.
    var adoptablePath: String? {
        let task = entry.record.task
        guard !isStream, let path = task.optionsBox?.value.adoptPath, !entry.record.isRepair,
            entry.record.adopted?.path != path
        else { return nil }
        guard entry.record.received == 0 else {
            if !entry.record.history.contains(where: { $0.by == "adopt" }) {
                run.appendHistory(by: "adopt", "\(path) was not read: the task has bytes of its own")
            }
            return nil
        }
        return path
    }

    /// Copies the bytes of the file, and continues behind them. The first answer of the server, or the digest, proves them.
    ///
    /// - Throws: `.destination` or `.invalidArgument` if the file cannot be read, before anything is fetched.
    func adopt(_ path: String, isolation: isolated (any Actor)? = #isolation) async throws(DownloadError) {
        let source: PartFile
        do throws(DownloadError) {
            source = try PartFile(reading: path.lastPathPart, in: Folder(path: path.folderPart))
        } catch {
            throw DownloadError(
                .destination, "The file to adopt cannot be used: \(error.message)", url: error.url)
        }
        defer { source.close() }
        let control =
            (path + ".aria2").existsOnDisk
            ? try [UInt8](ofFile: path + ".aria2", limit: 64 << 20, named: "control file") : nil
        let isCompared = entry.record.task.optionsBox?.value.checksum != nil || entry.hasPieceDigests
        // A killed process leaves its part file; the record has the name.
        try book.save(entry)
        let target = part.file
        let found = try await run.read(source) { (source) throws(DownloadError) in
            try AdoptedBytes(copying: source, control, to: target, isCompared: isCompared)
        }
        let count = found.count
        entry.remakeRanges {
            $0.adopt(
                AdoptedFile(path: path, read: found.file, isInUse: count > 0), found.ranges, length: found.length)
        }
        guard count > 0 else {
            run.appendHistory(
                by: "adopt", "\(path) has no bytes whose end a server could prove: the whole file is fetched")
            return fetchNext()
        }
        countRanges()
        for range in found.ranges where range.position > range.start {
            entry.record.record(range.start..<range.position, from: "file://\(path)")
        }
        let proof = isCompared ? "if the digest proves them" : "if the server has the same last bytes"
        run.appendHistory(
            by: "adopt",
            found.ranges.count { $0.position > $0.start } == 1 && found.ranges[0].start == 0
                ? "\(path): its first \(count.plural("byte")) count \(proof)"
                : "\(path): \(count.plural("byte")) in finished pieces count \(proof)")
        try book.save(entry)
        fetchNext()
    }
}

extension TaskRecord {
    /// True if a file is the adopted one, as it was read, and all its bytes are in the new file. Then the new file may take its
    /// name: nothing of it is lost.
    func mayReplace(adopted path: String) -> Bool {
        guard let adopted, adopted.isInUse, let found = FileIdentity(path: path) else { return false }
        return found.matches(adopted.read) && FileNames.areOfOneFile(path, adopted.path)
    }
}
