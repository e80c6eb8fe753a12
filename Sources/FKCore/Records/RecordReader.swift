import FKMiddleware
import Foundation

/// Answers queries over a work path that may be another process's: it needs no downloader and changes nothing.
///
/// What was read once is kept. A later query looks at each info file's change time and reads only those that have
/// changed since, and those of running tasks, whose progress is written without one. Every record it has read stays in
/// memory, so a reader is for as long as somebody looks through them.
///
/// Safe to use from any thread; queries run one after the other.
public final class RecordReader: Sendable {
    private struct Known {
        /// nil where the file had just been written: another write may leave the same time.
        var stamp: FileStamp?
        var record: DownloadRecord
    }

    private struct Index {
        var known: [TaskID: Known] = [:]
        var reads = 0
        var isRunning = false
    }

    private let reader: StoreReader
    private let index = Locked(Index())

    /// - Parameter workPath: a file URL; nil takes the default of `Configure`.
    /// - Throws: `.notFound` when there is no work path, `.workPathUnusable` or `.laterVersion`.
    public init(workPath: URL? = nil) throws {
        let path = WorkPath(Configure(workPath: workPath).workPath)
        try path.open(create: false)
        reader = StoreReader(path)
    }

    /// The records that match. Info files that cannot be read are left out.
    ///
    /// - Throws: `.invalidArgument` for an impossible query, `.notFound` for a barrel that is not there.
    public func records(_ query: RecordQuery = .init()) throws -> RecordPage {
        try query.validate()
        let ids: [TaskID] =
            if let name = query.barrel {
                try reader.barrel(name).members.map(\.id)
            } else if let ids = query.ids {
                Array(ids)
            } else {
                reader.workPath.allTaskIDs()
            }
        let records = index.withLock { index in
            refresh(ids, &index)
            return ids.compactMap { index.known[$0]?.record }
        }
        return try query.page(of: records)
    }

    /// How many info files were read so far.
    var reads: Int { index.withLock(\.reads) }

    private func refresh(_ ids: [TaskID], _ index: inout Index) {
        let isRunning = EngineLock.isHeld(reader.workPath)
        // Whether a task runs or waits for an engine is no change of its file.
        let isSettled = isRunning == index.isRunning
        index.isRunning = isRunning
        var stamps: [TaskID: FileStamp] = [:]
        var stale: [TaskID] = []
        for id in ids {
            guard let stamp = FileStamp(reader.workPath.infoPath(id)) else {
                index.known[id] = nil
                continue
            }
            if let known = index.known[id], known.stamp == stamp, isSettled || known.record.state.isSettled,
                known.record.state != .action
            {
                continue
            }
            stamps[id] = stamp
            stale.append(id)
        }
        guard !stale.isEmpty else { return }
        index.reads += stale.count
        for id in stale { index.known[id] = nil }
        let now = Date().timeIntervalSince1970
        for record in reader.records(stale) {
            guard let stamp = stamps[record.id] else { continue }
            let isSettled = now - stamp.time > FileStamp.granularity
            index.known[record.id] = Known(stamp: isSettled ? stamp : nil, record: DownloadRecord(record))
        }
    }
}

/// What changes when a file is written in place or replaced.
private struct FileStamp: Equatable {
    private let inode: UInt64
    private let size: Int64
    private let seconds: Int
    private let nanoseconds: Int

    /// Seconds within which two writes may get the same time: Linux counts it in steps of up to 10 ms.
    static let granularity = 0.02

    /// Seconds since 1970.
    var time: Double { Double(seconds) + Double(nanoseconds) / 1e9 }

    init?(_ path: String) {
        var status = stat()
        guard lstat(path, &status) == 0 else { return nil }
        inode = UInt64(status.st_ino)
        size = Int64(status.st_size)
        #if canImport(Darwin)
            let time = status.st_mtimespec
        #else
            let time = status.st_mtim
        #endif
        seconds = Int(time.tv_sec)
        nanoseconds = Int(time.tv_nsec)
    }
}
