import FKEngine
import FKMiddleware
import Foundation

/// The sum of a barrel whose tasks another process runs.
struct FollowedBarrel {
    let name: String
    private var barrel: BarrelEntry
    private var shares = TaskMap<TaskTotals.Share>()
    private var stamp: FileStamp?
    /// The running members.
    private(set) var running: Set<TaskID> = []

    /// Reads the barrel and all of its members.
    ///
    /// - Throws: `.notFound` if there is no such barrel.
    init(_ name: String, _ reader: StoreReader) throws {
        self.name = name
        stamp = FileStamp(reader.workPath.barrelPath(name))
        barrel = try BarrelEntry(name, in: reader.workPath)
        read(barrel.ids, reader)
        count()
    }

    private mutating func read(_ ids: [TaskID], _ reader: StoreReader) {
        reader.readAll(ids, problem: { _ in }) { _, record in
            let share = TaskTotals.Share(record)
            shares[record.id] = share
            if share.state == .action { running.insert(record.id) }
        }
    }

    private mutating func count() {
        barrel.count(barrel.ids.map { shares[$0] ?? TaskTotals.Share(state: .unknown) })
    }

    /// Updates the sum for one member. Other tasks are ignored.
    mutating func absorb(_ info: DownloadInfo) {
        guard barrel.contains(info.id) else { return }
        if info.state == .action { running.insert(info.id) } else { running.remove(info.id) }
        let share = TaskTotals.Share(info)
        barrel.replace(shares[info.id] ?? TaskTotals.Share(state: .unknown), by: share)
        shares[info.id] = share
    }

    /// Reads the file again if it has changed, and the records of new members.
    ///
    /// - Throws: `.notFound` if the barrel was deleted.
    mutating func refresh(_ reader: StoreReader) throws {
        guard let now = FileStamp(reader.workPath.barrelPath(name)) else {
            throw DownloadError(.notFound, "There is no barrel named \"\(name)\".")
        }
        // A file that was written a moment ago may change again at the same time.
        let isSettled = Date().timeIntervalSince1970 - now.time > FileStamp.granularity
        guard now != stamp else { return }
        stamp = isSettled ? now : nil
        try barrel.readAgain(in: reader.workPath)
        for id in Array(shares.keys) where !barrel.contains(id) { shares[id] = nil }
        running = running.filter { barrel.contains($0) }
        read(barrel.ids.filter { shares[$0] == nil }, reader)
        count()
    }

    /// Reads the file and the records of all members again.
    ///
    /// - Throws: `.notFound` if the barrel was deleted.
    mutating func update(_ reader: StoreReader) throws {
        try refresh(reader)
        reader.readAll(barrel.ids, problem: { _ in }) { _, record in absorb(DownloadInfo(record)) }
    }

    /// The present sum, as `BarrelEntry.info`.
    ///
    /// - Parameter now: the time of the monotonic clock.
    mutating func info(now: Int64 = Int64(DispatchTime.now().uptimeNanoseconds)) -> BarrelInfo {
        barrel.info(now: now)
    }
}

/// The barrels whose sums were asked for, the newest last, so that the next answer has a speed.
struct AskedBarrels {
    private static let most = 16
    private var barrels: [FollowedBarrel] = []

    /// The present sum of a barrel.
    ///
    /// - Parameter known: barrels that are followed in any case.
    /// - Throws: `.notFound` if there is no such barrel.
    mutating func info(_ name: String, known: [FollowedBarrel], _ reader: StoreReader) throws -> BarrelInfo {
        let known = (known + barrels).first { $0.name.isExactly(name) }
        barrels.removeAll { $0.name.isExactly(name) }
        var barrel = try known ?? FollowedBarrel(name, reader)
        if known != nil { try barrel.update(reader) }
        let info = barrel.info()
        barrels = barrels.suffix(Self.most - 1) + [barrel]
        return info
    }
}
