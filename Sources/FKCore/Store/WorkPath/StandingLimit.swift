import FKMiddleware
import Foundation

/// The rate limit over all tasks of a work path, set by `fk limit`. It lasts until it is changed, whichever process
/// runs the engine. It is a small JSON file, `limits`, replaced as a whole; without it there is no limit.
package struct StandingLimit: Sendable, Hashable {
    private struct File: Codable {
        var format: Int
        var rateLimit: Int64?
        var daily: [DailyWindow]?
    }

    /// Bytes per second outside the windows, at least 1; nil for no limit.
    package var rate: Int64?
    /// Times of each day with another limit. Where several contain a time, the lowest limit applies.
    package var daily: [DailyWindow] = []

    package init(rate: Int64? = nil, daily: [DailyWindow] = []) {
        self.rate = rate
        self.daily = daily
    }

    /// The limit at a minute of the day, and the window that sets it; nil for no limit.
    package func limit(at minute: Int) -> (rate: Int64?, window: DailyWindow?) {
        let windows = daily.filter { $0.contains(minute) }
        let window = windows.min { $0.rate ?? .max < $1.rate ?? .max }
        return window.map { ($0.rate, $0) } ?? (rate, nil)
    }

    /// The limit of a change. Without windows it replaces everything; windows replace those of the same times.
    package func setting(_ rate: Int64?, daily windows: [DailyWindow]) -> StandingLimit {
        guard !windows.isEmpty else { return StandingLimit(rate: rate) }
        var new = self
        new.daily.removeAll { old in windows.contains { $0.isSameTime(as: old) } }
        for var window in windows where !new.daily.contains(where: window.isSameTime) {
            window.rate = rate
            new.daily.append(window)
        }
        new.daily.sort { ($0.begin, $0.end) < ($1.begin, $1.end) }
        return new
    }

    /// The limit in force at a time, in bytes per second, at least 1; nil for no limit.
    ///
    /// - Parameter date: the default is now.
    /// - Throws: `.corruptInfo`, `.laterVersion` or `.disk`.
    package static func read(in workPath: WorkPath, at date: Date = Date()) throws -> Int64? {
        try stored(in: workPath).limit(at: DailyWindow.minute(of: date)).rate
    }

    /// The limit with its windows.
    ///
    /// - Throws: `.corruptInfo`, `.laterVersion` or `.disk`.
    package static func stored(in workPath: WorkPath) throws -> StandingLimit {
        let file: File
        do {
            file = try StoreJSON.decode(File.self, from: try FileIO.contents(of: workPath.limitsPath, limit: 16_384))
        } catch let error as DownloadError where error.code == .notFound {
            return StandingLimit()
        }
        guard file.format == 1 else {
            throw DownloadError(
                .laterVersion, "\(workPath.limitsPath) has format \(file.format); this program knows 1.")
        }
        return StandingLimit(rate: file.rateLimit.flatMap { $0 > 0 ? $0 : nil }, daily: file.daily ?? [])
    }

    /// Stores the limit.
    ///
    /// - Throws: `.noSpace` or `.disk`. The limit is then unchanged.
    package func write(in workPath: WorkPath) throws {
        guard rate != nil || !daily.isEmpty else {
            try FileIO.remove(workPath.limitsPath)
            return
        }
        let bytes = try StoreJSON.encode(File(format: 1, rateLimit: rate, daily: daily.isEmpty ? nil : daily))
        try bytes.withUnsafeBytes {
            try FileIO.replace(workPath.limitsPath, aside: workPath.limitsPath + ".new", $0)
        }
    }
}
