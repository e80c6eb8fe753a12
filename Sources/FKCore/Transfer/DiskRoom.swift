import FKMiddleware
import Foundation

/// Whether what is missing of a file fits onto its disk. All numbers are bytes.
struct DiskRoom: Equatable {
    /// What a process without privileges can still write.
    var free: Int64
    /// What other files that are being fetched onto this disk still need.
    var promised: Int64 = 0
    /// What stays free (`Configure.minFree`).
    var kept: Int64

    /// What may still be written; below 0 where there is too little already.
    var spare: Int64 {
        let (unpromised, isBelow) = free.subtractingReportingOverflow(promised)
        let (spare, isFarBelow) = unpromised.subtractingReportingOverflow(kept)
        return isBelow || isFarBelow ? .min : spare
    }

    /// - Parameters:
    ///   - needed: 0 for a file that has all of its bytes: it may get its name on a full disk.
    ///   - isResumed: bytes are held already. Such a task waits for room, as one does that meets a full disk; a new one
    ///     ends in error, before its first byte.
    /// - Throws: `.noSpace`.
    func check(_ needed: Int64, folder: String, isResumed: Bool) throws(DownloadError) {
        guard needed > 0, needed > spare else { return }
        var reasons = ["\(ByteSize.format(free)) are free"]
        if kept > 0 { reasons.append("\(ByteSize.format(kept)) of them are to stay free") }
        if promised > 0 { reasons.append("\(ByteSize.format(promised)) are for files that are being fetched") }
        throw DownloadError(
            .noSpace,
            "There is no room in \(folder): \(ByteSize.format(needed)) are needed, \(reasons.joined(separator: ", ")). "
                + "Free some space\(kept > 0 ? " or lower `minFree`" : ""), then retry.",
            isRetryable: isResumed)
    }
}

/// Small files are written before the engine hears of them. This says for how many of their bytes no look at the disk is
/// due.
struct SmallFileRoom {
    /// Nanoseconds after which others may have filled the disk.
    private static let patience: Int64 = 1_000_000_000

    private struct Key: Hashable {
        var device: dev_t
        var kept: Int64
    }
    private var known: [Key: (spare: Int64, until: Int64)] = [:]

    /// - Parameter look: what may be written as of now.
    /// - Returns: false when there may be no room for so many bytes: the engine is asked before they are written.
    mutating func take(_ bytes: Int64, on device: dev_t, keeping kept: Int64, now: Int64, look: () -> Int64) -> Bool {
        let key = Key(device: device, kept: kept)
        var (spare, until) = known[key] ?? (0, now)
        if now >= until || spare < bytes { (spare, until) = (look(), now + Self.patience) }
        let fits = spare >= bytes
        known[key] = (fits ? spare - bytes : spare, until)
        return fits
    }
}

extension Folder {
    /// Bytes that a process without privileges can still write here; nil where the file system does not tell.
    var free: Int64? {
        guard let status = fileSystem, status.f_blocks > 0 else { return nil }
        let (bytes, overflow) = UInt64(status.f_bavail).multipliedReportingOverflow(by: UInt64(status.f_frsize))
        return overflow ? nil : Int64(clamping: bytes)
    }
}
