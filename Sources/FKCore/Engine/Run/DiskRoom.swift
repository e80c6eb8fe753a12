import FKMiddleware
import Foundation

/// Decides whether the missing bytes of a file fit on its disk. All numbers are bytes.
struct DiskRoom: Equatable {
    /// The free space for a process without privileges.
    var free: Int64
    /// The bytes that other running tasks still need on this disk.
    var promised: Int64 = 0
    /// The space to keep free (`Configure.minFree`).
    var kept: Int64

    /// The space that may still be used; negative if too little is free already.
    var spare: Int64 {
        let (unpromised, isBelow) = free.subtractingReportingOverflow(promised)
        let (spare, isFarBelow) = unpromised.subtractingReportingOverflow(kept)
        return isBelow || isFarBelow ? .min : spare
    }

    /// Checks the space for one file.
    ///
    /// - Parameters:
    ///   - needed: the missing bytes. 0 for a file that has all its bytes: it may be renamed on a full disk.
    ///   - isResumed: true if bytes are stored already. Such a task waits for space, as on a full disk. A new one
    ///     fails before its first byte.
    /// - Throws: `.noSpace`, retryable if `isResumed`.
    func check(_ needed: Int64, folder: String, isResumed: Bool) throws(DownloadError) {
        guard needed > 0, needed > spare else { return }
        var needs = ["\(ByteSize.format(needed)) are needed"]
        if promised > 0 { needs.append("\(ByteSize.format(promised)) for files that are being fetched") }
        if kept > 0 { needs.append("\(ByteSize.format(kept)) in reserve") }
        throw DownloadError(
            .noSpace,
            "There is not enough space in \(folder): \(needs.joined(separator: ", plus ")); \(ByteSize.format(free)) are free. "
                + "Free some space, then retry.",
            isRetryable: isResumed, remedy: kept > 0 ? .lowerMinFree : nil)
    }
}

/// Caches the free space for small files, which are written before the engine learns of them.
struct SmallFileRoom {
    /// The nanoseconds after which other processes may have filled the disk.
    private static let patience: Int64 = 1_000_000_000

    private struct Key: Hashable {
        var device: dev_t
        var kept: Int64
    }
    private var known: [Key: (spare: Int64, until: Int64)] = [:]

    /// Reserves space for a small file.
    ///
    /// - Parameter look: returns the space that may be used now.
    /// - Returns: false if the space may be too small. The engine is then asked before the bytes are written.
    mutating func reserve(_ bytes: Int64, on device: dev_t, keeping kept: Int64, now: Int64, look: () -> Int64) -> Bool
    {
        let key = Key(device: device, kept: kept)
        var (spare, until) = known[key] ?? (0, now)
        if now >= until || spare < bytes { (spare, until) = (look(), now + Self.patience) }
        let fits = spare >= bytes
        known[key] = (fits ? spare - bytes : spare, until)
        return fits
    }
}

extension Folder {
    /// The free space for a process without privileges, in bytes; nil if the file system does not report it.
    package var free: Int64? {
        guard let status = fileSystem, status.f_blocks > 0 else { return nil }
        let (bytes, overflow) = UInt64(status.f_bavail).multipliedReportingOverflow(by: UInt64(status.f_frsize))
        return overflow ? nil : Int64(clamping: bytes)
    }
}
