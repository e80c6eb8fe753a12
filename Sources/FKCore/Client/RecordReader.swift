import FKEngine
import FKMiddleware
import Foundation

/// Answers queries over a work path that another process may own. It needs no downloader and changes nothing.
///
/// It caches every record it has read. A later query checks the change time of each info file and reads only the
/// changed ones and those of running tasks, whose progress is written without a change of the record. All records
/// stay in memory until the reader is released.
///
/// It is safe to use from any thread. Queries run one after the other and block the calling thread.
package final class RecordReader: Sendable {
    private struct Known {
        /// nil if the file had just been written, because another write may have the same time.
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

    /// Opens a work path.
    ///
    /// - Parameter workPath: a file URL; nil, the default, uses the default of `Configure`.
    /// - Throws: `.notFound` if there is no work path, `.workPathUnusable` or `.laterVersion`.
    package init(workPath: URL? = nil) throws(DownloadError) {
        let path = WorkPath(Configure(workPath: workPath))
        try typedNow { try path.open(create: false) }
        reader = StoreReader(path)
    }

    /// The records that match a query. Unreadable info files are left out.
    ///
    /// - Throws: `.invalidArgument` for an invalid query, `.notFound` for a missing barrel.
    package func records(_ query: RecordQuery = .init()) throws(DownloadError) -> RecordPage {
        try typedNow { try read(query) }
    }

    private func read(_ query: RecordQuery) throws -> RecordPage {
        try query.validate()
        let ids: [TaskID] =
            if let name = query.barrel {
                try reader.barrelIDs(name).ids
            } else if let ids = query.ids {
                Array(ids)
            } else {
                try reader.workPath.allTaskIDs()
            }
        let records = index.withLock { index in
            refresh(ids, &index)
            return ids.compactMap { index.known[$0]?.record }
        }
        return try query.page(of: records)
    }

    /// The number of info files read so far.
    var reads: Int { index.withLock(\.reads) }

    private func refresh(_ ids: [TaskID], _ index: inout Index) {
        let isRunning = EngineLock.isHeld(reader.workPath)
        // A task that starts running or waiting for an engine does not change its file.
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
            index.known[record.id] = Known(
                stamp: isSettled ? stamp : nil, record: DownloadRecord(record, in: reader.workPath))
        }
    }
}

/// The file attributes that change when a file is written in place or replaced.
struct FileStamp: Equatable {
    private let inode: UInt64
    private let size: Int64
    /// Nanoseconds since 1970.
    private let modified: Int64

    /// The seconds within which two writes may have the same time. Linux counts it in steps of up to 10 ms.
    static let granularity = 0.02

    /// Seconds since 1970.
    var time: Double { Double(modified) / 1e9 }

    init?(_ path: String) {
        var status = stat()
        guard lstat(path, &status) == 0 else { return nil }
        inode = UInt64(status.st_ino)
        size = Int64(status.st_size)
        modified = status.modificationTime
    }
}
