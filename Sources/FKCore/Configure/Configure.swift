import FKMiddleware
import Foundation

/// How much a completed file survives.
public enum Durability: String, Codable, Sendable, Hashable, CaseIterable {
    /// Nothing is lost when processes die. After a power cut, what was not on the disk yet is noticed and fetched
    /// again. The default.
    case process
    /// File, info file and folder are synced before a task is complete: nothing is lost when the power goes.
    case power
}

/// All settings of a downloader. Building a `Downloader` from it makes it effective (FKDownloader's `takeSession`).
///
/// Each setting names its range. One outside is moved to the nearer end where that is said, else refused (`validate()`).
public struct Configure: Sendable {
    /// Folder of every info file and of files without a destination of their own. Cannot be changed once a
    /// downloader is live. Default: `FK_WORK_PATH`, else `$XDG_STATE_HOME/fk`, else `~/.local/state/fk`; on macOS
    /// `~/Library/Application Support/fk`.
    public var workPath: URL

    /// Tasks that run at once, 1...256, values outside are clamped. Default 3. Lowering it while tasks run lets them
    /// finish.
    public var maxAction: Int = 3 {
        didSet { maxAction = min(max(maxAction, 1), 256) }
    }

    /// Info callbacks come every `distributeSpeed` x 0.2 s, 1...10, values outside are clamped. Default 5: one second.
    public var distributeSpeed: Int = 5 {
        didSet { distributeSpeed = min(max(distributeSpeed, 1), 10) }
    }

    /// Which of the waiting tasks of equal priority starts first. Default `.fifo`.
    public var order: QueueOrder = .fifo

    /// Connections to one host over all tasks, 1...256, clamped. Default 16.
    public var maxConnectionsPerHost: Int = 16 {
        didSet { maxConnectionsPerHost = min(max(maxConnectionsPerHost, 1), 256) }
    }

    /// Connections one file may use, `.fixed` 1...256; a task's own option goes over it. Default `.automatic`.
    public var connections: ConnectionLimit = .automatic

    /// Bytes a second over all tasks, at least 0; nil, the default, and 0 are no limit. A change acts at once.
    public var rateLimit: Int64?

    /// When failed attempts are tried again.
    public var retry = RetryPolicy()

    /// What moves the bytes. Default `.automatic`. Has no effect once a downloader is live.
    public var transportKind: TransportKind = .automatic

    /// The defaults of how requests travel; a task's own options go over them.
    public var transport = TransportOptions()

    /// What is synced before a task counts as complete. Default `.process`.
    public var durability: Durability = .process

    /// Bytes that stay free on the disk of the files; a task's own option goes over it. Default 64 MiB; 0 fills the disk;
    /// negative values count as 0. A file whose known length does not fit ends in `.noSpace` before its first byte, and
    /// waits for room when bytes of it are held already. A file of unknown length is fetched until the disk is full.
    public var minFree: Int64 = 64 << 20 {
        didSet { minFree = max(0, minFree) }
    }

    /// - Parameter workPath: a file URL; nil takes the default named at `workPath`.
    public init(workPath: URL? = nil) {
        self.workPath = workPath ?? WorkPath.standard.url
    }

    /// Seconds between two polled info callbacks.
    public var distributeInterval: Double { Double(distributeSpeed) * 0.2 }
}
