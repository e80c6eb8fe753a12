import FKMiddleware
import Foundation

/// Reads a work path without owning its engine: what `fk list`, `fk info` and other processes see.
///
/// It changes nothing. Info files that cannot be read are skipped and reported; moving them is the engine's business.
package struct StoreReader: Sendable {
    package let workPath: WorkPath

    package init(_ workPath: WorkPath) {
        self.workPath = workPath
    }

    /// A task as it is now: live counters applied; what a dead engine left running is shown as waiting for one.
    ///
    /// - Throws: `.notFound`, `.corruptInfo`, `.laterVersion`, `.disk`.
    package func record(_ id: TaskID) throws -> TaskRecord {
        do {
            return present(try InfoFile.read(workPath.infoPath(id)), engineWaits())
        } catch let error as DownloadError where error.code == .notFound {
            throw DownloadError(.notFound, "There is no task \(id.short).")
        }
    }

    /// The tasks that meet the condition, in the order of submission. Only those are kept in memory.
    ///
    /// - Parameter problem: told of each info file that could not be read.
    package func records(
        where isWanted: (TaskRecord) -> Bool = { _ in true }, problem: (DownloadError) -> Void = { _ in }
    ) -> [TaskRecord] {
        read(workPath.allTaskIDs(), containing: nil, problem: problem, where: isWanted)
    }

    /// The tasks of these ids that are still there, in the order given; for the members of a barrel.
    package func records(_ ids: some Sequence<TaskID>, problem: (DownloadError) -> Void = { _ in }) -> [TaskRecord] {
        var records: [TaskRecord] = []
        readAll(Array(ids), containing: nil, problem: problem) { records.append($0) }
        return records
    }

    /// The tasks of a URL, in the order of submission: more than one where it has several destinations.
    ///
    /// - Parameter url: percent-encoded, as in the records.
    package func records(url: String, problem: (DownloadError) -> Void = { _ in }) -> [TaskRecord] {
        // A URL stands in the payload as it is, so that files without its bytes need no parsing.
        read(workPath.allTaskIDs(), containing: Array(url.utf8), problem: problem) { $0.task.url.isExactly(url) }
    }

    /// The one task whose id begins with these digits.
    ///
    /// - Parameter prefix: 4 to 64 hexadecimal digits, in any case.
    /// - Throws: `.invalidArgument` for fewer or other characters, and when several ids begin so (it lists them);
    ///   `.notFound`; what `record` throws.
    package func record(idPrefix prefix: String) throws -> TaskRecord {
        let prefix = prefix.lowercased()
        guard Self.isIDPrefix(prefix) else {
            throw DownloadError(.invalidArgument, "The beginning of an id has 4 to 64 hexadecimal digits.")
        }
        let ids = workPath.taskIDs(prefix: prefix).sorted()
        guard let id = ids.first else { throw DownloadError(.notFound, "There is no task \(prefix).") }
        guard ids.count == 1 else {
            let list = ids.prefix(8).map(\.short).joined(separator: ", ")
            throw DownloadError(
                .invalidArgument,
                "\(ids.count) tasks begin with \(prefix): \(list)\(ids.count > 8 ? ", …" : ""). Give more digits.")
        }
        return try record(id)
    }

    /// True for 4 to 64 hexadecimal digits.
    package static func isIDPrefix(_ text: String) -> Bool {
        (4...64).contains(text.utf8.count)
            && text.utf8.allSatisfy { (0x30...0x39).contains($0) || (0x61...0x66).contains($0 | 0x20) }
    }

    /// What a person named a task by: a URL, or 4 or more digits of an id.
    ///
    /// - Throws: `.notFound`, and for an id what `record(idPrefix:)` throws.
    package func records(named text: String) throws -> [TaskRecord] {
        if Self.isIDPrefix(text) { return [try record(idPrefix: text)] }
        let records = records(url: text)
        guard !records.isEmpty else { throw DownloadError(.notFound, "There is no task of that URL.", url: text) }
        return records
    }

    // MARK: Barrels

    /// The names of all barrels, sorted.
    package func barrelNames() -> [String] { BarrelFile.list(in: workPath) }

    /// - Throws: `.notFound`, `.corruptInfo`, `.laterVersion`, `.disk`.
    package func barrel(_ name: String) throws -> BarrelRecord { try BarrelFile.load(name, in: workPath) }

    // MARK: Inside

    private func read(
        _ ids: [TaskID], containing bytes: [UInt8]?, problem: (DownloadError) -> Void,
        where isWanted: (TaskRecord) -> Bool
    ) -> [TaskRecord] {
        var records: [TaskRecord] = []
        readAll(ids, containing: bytes, problem: problem) { if isWanted($0) { records.append($0) } }
        return records.sorted { ($0.number, $0.id) < ($1.number, $1.id) }
    }

    /// So many info files are worth a second thread.
    private static let block = 512

    /// Reads info files on as many threads as there are processors, and hands them over in the order of `ids`.
    private func readAll(
        _ ids: [TaskID], containing bytes: [UInt8]?, problem: (DownloadError) -> Void, found: (TaskRecord) -> Void
    ) {
        let waits = engineWaits()
        let blocks = stride(from: 0, to: ids.count, by: Self.block).map { ids[$0..<min($0 + Self.block, ids.count)] }
        // So many blocks at a time that what is not wanted does not pile up.
        for group in stride(from: 0, to: blocks.count, by: 16).map({ blocks[$0..<min($0 + 16, blocks.count)] }) {
            for results in Parallel.map(Array(group), { $0.map { read($0, containing: bytes, waits) } }) {
                for result in results {
                    switch result {
                    case .success(let record): if let record { found(record) }
                    // Gone since the folder was read.
                    case .failure(let error): if error.code != .notFound { problem(error) }
                    }
                }
            }
        }
    }

    private func read(
        _ id: TaskID, containing bytes: [UInt8]?, _ waits: WaitNotice?
    ) -> Result<TaskRecord?, DownloadError> {
        do {
            return .success(
                try InfoFile.read(workPath.infoPath(id), containing: bytes).map { present($0, waits) })
        } catch {
            return .failure(DownloadError(wrapping: error, code: .disk, message: "A task cannot be read."))
        }
    }

    /// What the engine says about tasks that wait; nil without an engine.
    private func engineWaits() -> WaitNotice? { EngineLock.isHeld(workPath) ? WaitNotice.load(from: workPath) : nil }

    private func present(_ contents: InfoContents, _ waits: WaitNotice?) -> TaskRecord {
        var record = contents.record.applyingLiveCounters(contents.counters)
        if record.isRenameMissing {
            record.state = .action
            record.path = nil
        }
        if let waits {
            record.waiting = waits.waiting(of: record, now: Date())
        } else if record.state == .action {
            record.state = .idle
            record.waiting = Waiting(.engine)
        }
        return record
    }
}
