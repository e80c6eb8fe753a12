import FKMiddleware
import Foundation

/// The work paths of streams, files that nobody keeps. Each process has its own below the usual one, with an engine and its lock.
/// What a killed process leaves is removed by the next one that opens the work path.
///
/// ```text
/// <root>/streams/<random>/    a work path: engine.lock, tasks, files ...
///        hosts, limits, middlewares     links to those of <root>
///        waiting                        the same: the pauses that servers have asked others for
///        turns                          a symbolic link: requests to a host are counted together
/// ```
package enum StreamFolder {
    /// Makes a work path for streams.
    ///
    /// - Parameter open: acquires its lock. No other process removes it before that.
    /// - Throws: the errors of `open`; `.noSpace` or `.disk` if the folder cannot be made.
    package static func make<Value>(in workPath: WorkPath, _ open: (WorkPath) throws -> Value) throws -> Value {
        try FileIO.makeFolder(workPath.turnsFolder)
        return try workPath.withSettingsLock {
            try FileIO.makeFolder(workPath.streamsFolder)
            let inner = workPath.streamsFolder + "/" + UUID().uuidString.lowercased()
            do {
                try FileIO.makeFolder(inner)
                // Without them, the streams do without: the outer work path has no such files.
                for name in ["hosts", "limits", "middlewares", "waiting"] {
                    link("\(workPath.root)/\(name)", "\(inner)/\(name)")
                }
                symlink(workPath.turnsFolder, "\(inner)/turns")
                return try open(WorkPath(inner))
            } catch {
                try? FileManager.default.removeItem(atPath: inner)
                rmdir(workPath.streamsFolder)
                throw error
            }
        }
    }

    /// Removes a work path whose lock was released.
    package static func remove(_ inner: WorkPath, in workPath: WorkPath) {
        try? FileManager.default.removeItem(atPath: inner.root)
        // Only an empty folder goes. Under the lock: another stream may be about to make its own in it.
        try? workPath.withSettingsLock { _ = rmdir(workPath.streamsFolder) }
    }

    /// Removes what killed processes have left. It does nothing while another process makes one.
    static func sweep(_ workPath: WorkPath) {
        guard access(workPath.streamsFolder, F_OK) == 0 else { return }
        try? workPath.withSettingsLock(waiting: 0) {
            for name in try FileIO.names(in: workPath.streamsFolder) {
                let inner = "\(workPath.streamsFolder)/\(name)"
                if !EngineLock.isHeld(WorkPath(inner)) { try? FileManager.default.removeItem(atPath: inner) }
            }
            rmdir(workPath.streamsFolder)
        }
    }
}

extension WorkPath {
    /// The folder of `StreamFolder`.
    package var streamsFolder: String { root + "/streams" }
}
