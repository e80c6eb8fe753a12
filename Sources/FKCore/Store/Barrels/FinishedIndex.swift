import FKMiddleware
import Foundation

/// The finished members of a long barrel, in a file beside the barrel's, so that running it again reads none of their records.
///
/// ```text
/// "fkdone" 0 1   SHA-256 of the boot's id and the bases   CRC-32C of both        the header
/// length   CRC-32C   entries                                       a block; any number of them
/// ```
///
/// An entry has what a run shows of a finished task, and the inode and the time of change (`st_ctime`) of its info file. It counts
/// only while the info file has both. Every write to a record changes the time, also a write of another program. An entry whose
/// record was changed, replaced, restored, copied or removed is ignored, and the record is read. After another boot the index is
/// not used, because unsynced records may have been lost, nor after a base has moved. It may be deleted at any time.
package struct FinishedIndex: Sendable {
    private let workPath: WorkPath
    private let path: String

    /// Barrels with fewer members have no index.
    package static let leastCount = 4_096
    static let magic: [UInt8] = Array("fkdone\0\u{1}".utf8)
    static let headerSize = 44

    /// The index of a barrel. It reads nothing yet.
    package init(_ barrel: String, in workPath: WorkPath) {
        self.workPath = workPath
        path = workPath.donePath(barrel)
    }

    /// Reads the index a portion at a time.
    package func reader() -> FinishedReader { FinishedReader(path, workPath) }

    /// Replaces the index by the entries that are still right and those of `found`.
    ///
    /// This process must not change the records during the call. If anything fails, the old index stays: it is right too.
    ///
    /// - Parameter isFinished: false leaves a task out.
    package func add(_ found: FinishedSpool, where isFinished: (TaskID) -> Bool) {
        guard let stamps = InfoStamps(workPath), NetworkFileSystem.name(of: workPath.root) == nil else { return }
        // The times of files advance in steps: a change within the same step would not show.
        usleep(Stamp.step)
        let aside = path + ".new"
        try? FileIO.replace(path, aside: aside) {
            try FileIO.create(aside) { descriptor in
                let writer = FinishedWriter(aside, descriptor, from: Self.headerSize)
                let now = Stamp.now
                func add(_ entry: FinishedEntry, as stamp: Stamp?) throws {
                    guard let stamp, stamp.isSettled(at: now), isFinished(entry.id) else { return }
                    var entry = entry
                    entry.stamp = stamp
                    try writer.append(entry)
                }
                let old = reader()
                while let (entry, stamp) = old.nextEntry() { try add(entry, as: stamp) }
                try found.forEach { try add($0, as: stamps.stamp(of: $0.id)) }
                try writer.flush()
                try Self.header(workPath).withUnsafeBytes { try FileIO.write($0, to: descriptor, at: 0, path: aside) }
            }
        }
    }

    static func header(_ workPath: WorkPath) -> [UInt8] {
        let bases = workPath.places.bases.map { "\n\($0.name):\($0.root)" }.joined()
        var bytes = magic + Digester.bytes(of: BootID.current + bases, .sha256)
        let crc = bytes.withUnsafeBytes { CRC32C.checksum($0) }
        withUnsafeBytes(of: crc.littleEndian) { bytes += $0 }
        return bytes
    }
}

/// Reads the entries of an index whose records have not changed. It opens no info file.
package final class FinishedReader {
    private let stamps: InfoStamps?
    private let descriptor: Int32
    private var blocks: FinishedBlocks?

    init(_ path: String, _ workPath: WorkPath) {
        stamps = InfoStamps(workPath)
        descriptor = (try? FileIO.open(path, O_RDONLY)) ?? -1
        let blocks = FinishedBlocks(path, descriptor, from: FinishedIndex.headerSize)
        self.blocks = blocks.hasHeader(FinishedIndex.header(workPath)) ? blocks : nil
    }

    deinit { if descriptor >= 0 { FileIO.close(descriptor) } }

    /// The next tasks, in the order of the file; none at the end.
    package func next(atMost limit: Int) -> [DownloadInfo] {
        var infos: [DownloadInfo] = []
        infos.reserveCapacity(limit)
        while infos.count < limit, let (entry, _) = nextEntry() { infos.append(entry.info) }
        return infos
    }

    func nextEntry() -> (entry: FinishedEntry, stamp: Stamp)? {
        guard let stamps else { return nil }
        while let entry = blocks?.next() {
            if stamps.stamp(of: entry.id) == entry.stamp { return (entry, entry.stamp) }
        }
        return nil
    }
}

/// The inode and the time of the last change of an info file, its content and its metadata.
struct Stamp: Hashable {
    var inode: UInt64 = 0
    /// Nanoseconds since 1970.
    var changed: Int64 = 0

    /// Microseconds after which a further change has another time on usual file systems.
    static let step: UInt32 = 25_000
    /// The same for file systems that store whole seconds or every second one.
    private static let longStep: Int64 = 2_500_000_000

    static var now: Int64 {
        var time = timespec()
        clock_gettime(CLOCK_REALTIME, &time)
        return time.nanoseconds
    }

    /// True if a change after `now` has another time. False also for a time in the future: a clock was set back.
    func isSettled(at now: Int64) -> Bool {
        now &- changed >= (changed % 1_000_000_000 == 0 ? Self.longStep : Int64(Self.step) * 1_000 - 5_000_000)
    }
}

/// Looks at info files without opening them.
final class InfoStamps {
    private let folder: Int32

    /// nil if the folder of the tasks cannot be opened.
    init?(_ workPath: WorkPath) {
        guard let folder = try? FileIO.openFolder(workPath.tasksFolder) else { return nil }
        self.folder = folder
    }

    deinit { FileIO.close(folder) }

    /// nil if there is no info file.
    func stamp(of id: TaskID) -> Stamp? {
        // `ab/<id>.info`
        withUnsafeTemporaryAllocation(of: UInt8.self, capacity: 73) { name in
            id.writeHex(into: UnsafeMutableBufferPointer(rebasing: name[3..<67]))
            name[0] = name[3]
            name[1] = name[4]
            name[2] = 0x2f
            _ = name[67...].update(fromContentsOf: [0x2e, 0x69, 0x6e, 0x66, 0x6f, 0])
            var status = stat()
            let isThere = name.withMemoryRebound(to: CChar.self) {
                fstatat(folder, $0.baseAddress!, &status, AT_SYMLINK_NOFOLLOW) == 0
            }
            guard isThere, status.st_mode & S_IFMT == S_IFREG else { return nil }
            return Stamp(inode: UInt64(status.st_ino), changed: status.changeTime)
        }
    }
}

extension WorkPath {
    /// The index of the finished members of a barrel (`FinishedIndex`).
    package func donePath(_ barrel: String) -> String { barrelPath(barrel) + ".done" }
    /// The answers of the last listing of a barrel's source (`ListedPlace.Memory`).
    package func listingPath(_ barrel: String) -> String { barrelPath(barrel) + ".listing" }
}
