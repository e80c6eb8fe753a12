import FKMiddleware
import Foundation

extension Configure {
    /// The events that a completed file survives.
    package enum Durability: String, Codable, Sendable, Hashable, CaseIterable {
        /// Nothing is lost when processes are killed. After a power cut, bytes that had not reached the disk are detected
        /// and fetched again. The default.
        case process
        /// The file, its info file and its folder are synced before the task is complete, so a power cut loses nothing.
        case power
    }
}

/// All settings of a downloader. They take effect when a `Downloader` is created from them.
///
/// Each setting documents its range. A value outside is refused with `.invalidArgument` when the settings are used. Only `maxAction` is
/// clamped, as in FKDownloader.
public struct Configure: Sendable {
    /// The folder of all info files, and of files without a destination of their own. It cannot change while a
    /// downloader is live. Nothing can be downloaded into it or below it.
    ///
    /// The default is `fk` in the program's own folder: `$XDG_STATE_HOME/NAME/fk`, else `~/.local/state/NAME/fk`, where NAME is the
    /// name of the program; on Apple's systems `~/Library/Application Support/ID/fk`, where ID is the bundle's identifier.
    /// `sharedWithFk` has the work path of the command `fk`.
    public var workPath: URL

    /// Folders that may move, by names of your own: ASCII letters, digits, `-` and `_`. The places in info files below a base are
    /// relative to it, so that its tasks continue after it was moved, with the same ids; so are those below the work path. Give
    /// the present folders before the work path is opened. It cannot change while a downloader is live. The default is none; on
    /// Apple's systems `home`, `documents` and `caches` are bases without being named.
    public var bases: [String: URL] = [:]

    /// The maximum number of running tasks, 1 to 256, clamped. The default is 3. Lowering it does not stop running
    /// tasks.
    public var maxAction: Int = 3 {
        didSet { maxAction = min(max(maxAction, 1), 256) }
    }

    /// True begins with a paused queue: tasks wait until `Downloader.resume()`. The default is false. A pause is a state of the queue:
    /// only `Downloader.pause()` and `resume()` change it later, `update(_:)` does not, and `Downloader.configure` shows it.
    public var isPaused = false

    /// The interval of progress reports: polled callbacks, download middlewares, sequences. 0.2 to 2 seconds. The default
    /// is one second. Changes of state are reported at once.
    public var progressInterval: Duration = .seconds(1)

    /// The start order of waiting tasks with equal priority. The default is `.fifo`.
    public var order: QueueOrder = .fifo

    /// The maximum number of connections to one host over all tasks, 1 to 256. The default is 16.
    public var maxConnectionsPerHost: Int = 16

    /// The limits of requests to hosts. The default is none. Those of `fk config host` apply as well, and have precedence
    /// over policies with the same pattern.
    public var hosts: [HostPolicy] = []

    /// The number of connections of one file, `.fixed` with 1 to 256. A task's own option overrides it. The default
    /// is `.automatic`.
    public var connections: ConnectionLimit = .automatic

    /// The rate limit over all tasks in bytes per second, at least 0. nil, the default, and 0 set no limit. A change
    /// takes effect at once. `Control.setRateLimit` sets another one, which is stored; the lower of both applies.
    public var rateLimit: Int64?

    /// The rules for retrying failed attempts.
    public var retry = RetryPolicy()

    /// When bytes of several sources of a file may be combined. The default is `.prove`. A task's own option overrides it.
    public var mirrorPolicy: MirrorPolicy = .prove

    /// The transport. The default is `.automatic`. Changing it has no effect on a live downloader.
    public var transportKind: TransportKind = .automatic

    /// The networks that URLSession may use on Apple's systems (FKDownloader's `allowsCellularAccess`). The default is all. With libcurl
    /// and on other systems, which do not tell networks apart, another value is refused. Changing it has no effect on a live
    /// downloader.
    public var networks = Networks()

    /// The session that continues downloads while the application is suspended or ended; nil, the default, for none. Tasks of type
    /// `.background` then use it always, and others after `Downloader.enterBackground()`. Changing it has no effect on a live downloader.
    public var background: BackgroundSession?

    /// The default transport options. A task's own options override them.
    public var transport = TransportOptions()

    /// The data that is synced before a task is complete.
    package var durability: Configure.Durability = .process

    /// True syncs each file, its info file and its folder before the task is complete, so a power cut loses nothing. The default is
    /// false: bytes that had not reached the disk are detected after a power cut, and fetched again.
    public var syncsFiles: Bool {
        get { durability == .power }
        set { durability = newValue ? .power : .process }
    }

    /// Bytes to keep free on the file system of the files, in addition to what the files need; at least 0. The
    /// default is 64 MiB; 0 allows a full disk.
    /// A task's own option overrides it. A file whose known length does not fit fails with `.noSpace` before its
    /// first byte; if some of its bytes are stored already, it waits for space instead. A file of unknown length is
    /// fetched until the disk is full.
    public var minFree: Int64 = 64 << 20

    /// The bytes that the files of the work path may use on disk: finished files, published sets, and files that are being downloaded; at
    /// least 0. nil, the default, sets no limit.
    ///
    /// A file that does not fit is not fetched before others were deleted as `Downloader.trim(to:by:)` does, the least recently used
    /// first, and at most a 32nd of the budget in addition, so that small files do not go one by one. So it deletes finished files that your tasks
    /// have written to any folder. Barrels that are read in `Barrel.withFiles` and barrels with members that wait or are being downloaded stay.
    /// It does the same where the disk lacks space. The task's history and `Downloader.onTrim(_:)` say what was deleted.
    ///
    /// A file that is larger than the budget, or for which no room can be made, fails with `.noSpace` before its first byte. If some of its
    /// bytes are stored already, or if files that are being downloaded take the room, it is retried as on a full disk. A file of unknown
    /// length is fetched, and counts once it is complete.
    public var diskBudget: Int64?

    /// The folder for part files, such as one on a fast disk, outside of the work path. The finished file is moved from there; to
    /// another file system it is copied and synced, and the destination needs the space as well. nil, the default, keeps them beside
    /// the finished files. A change counts for part files that are not made yet.
    public var partsFolder: URL?

    /// False leaves out the middleware programs of the work path (`MiddlewareProgram`). The default is true. Changing it
    /// has no effect on a live downloader.
    public var runsMiddlewarePrograms = true

    /// Creates default settings.
    ///
    /// - Parameter workPath: a file URL; nil, the default, uses the default of `workPath`. Another URL is refused later.
    public init(workPath: URL? = nil) {
        self.workPath = workPath ?? WorkPath.ofApplication.url
    }

    /// Default settings with the default work path of the command `fk`, for a program that shows or continues its tasks:
    /// `FK_WORK_PATH`, else `$XDG_STATE_HOME/fk`, else `~/.local/state/fk`; on macOS `~/Library/Application Support/fk`. Beside a running
    /// `fk`, use it with the role `.either` or `.client`.
    public static var sharedWithFk: Configure { Configure(workPath: WorkPath.ofCommand.url) }

    /// A new transport of this kind.
    ///
    /// - Throws: `.invalidArgument` if it is not compiled in.
    package func makeTransport() throws(DownloadError) -> any Transport { try transportKind.makeTransport(networks) }
}
