import FKEngine
import FKMiddleware
import Foundation

/// What a run wants, whichever process carries it out. A command hands it as a whole to a background process, to `fk rpc` and to the
/// engine that it becomes: a field that is added here is handed over without another line.
package struct RunOrders: Codable, Sendable, Hashable {
    /// The maximum number of this command's tasks at once, 1 to 256; nil for the downloader's default.
    package var jobs: Int?
    /// The number of connections per file; nil for the downloader's default.
    package var connections: ConnectionLimit?
    /// The rate limit over this command's tasks in bytes per second; nil and 0 set no limit.
    package var rateLimit: Int64?
    /// The maximum number of this command's connections to one host, 1 to 256; nil for the host's policy alone.
    package var perHost: Int?
    /// The rate of this command's requests to one host; nil for the host's policy alone.
    package var requestRate: RequestRate?
    /// A contact for the User-Agent; nil for that of the host's policy.
    package var contact: String?
    /// The number of shards that divide the policies of hosts among themselves; nil for one.
    package var shards: Int?
    /// Bytes to keep free on the disk; nil for the downloader's default.
    package var minFree: Int64?
    /// The bytes that the files of the work path may use on disk; nil for the downloader's default.
    package var diskBudget: Int64?
    /// The absolute path of the folder for part files; nil for the destination.
    package var partsFolder: String?
    /// When a file counts as complete; nil for the downloader's default.
    package var durability: Configure.Durability?
    /// The transport; nil for the downloader's default.
    package var transport: TransportKind?
    /// True follows no redirect to a loopback, link-local or private address.
    package var noPrivate = false
    /// True ends the run although tasks were suspended during it.
    package var noWait = false
    /// The absolute path of the log; nil for none.
    package var log: String?
    /// How much the log contains; nil for the usual lines.
    package var logLevelName: String?
    /// When the run starts; nil for now.
    package var start: Date?
    /// Identifies the limits of this command to the engine, also those of a background process that continues it.
    package var group = UUID().uuidString

    package init() {}

    /// Reads what `text` returned.
    ///
    /// - Throws: an error for any other text.
    package init(text: String) throws { self = try StoreJSON.decode(RunOrders.self, from: Array(text.utf8)) }

    /// All fields in a line, for another process.
    ///
    /// - Throws: `DownloadError` if JSON cannot represent a value.
    package func text() throws -> String { String(decoding: try StoreJSON.encode(self), as: UTF8.self) }

    /// The settings of an engine that has other tasks than this command's as well. Its limits are in `own`.
    package func settings(over base: Configure) -> Configure {
        var configure = base
        if let jobs { configure.maxConnectionsPerHost = max(jobs, configure.maxConnectionsPerHost) }
        if let minFree { configure.minFree = minFree }
        if let diskBudget { configure.diskBudget = diskBudget }
        if let partsFolder { configure.partsFolder = URL(fileURLWithPath: partsFolder, isDirectory: true) }
        if let durability { configure.durability = durability }
        if let transport { configure.transportKind = transport }
        if noPrivate { configure.transport.refusePrivateRedirects() }
        return configure
    }

    /// The settings of a downloader all of whose tasks are this command's.
    package func settingsForAll(over base: Configure) -> Configure {
        var configure = settings(over: base)
        if let jobs { configure.maxAction = jobs }
        if let connections { configure.connections = connections }
        if let perHost { configure.maxConnectionsPerHost = perHost }
        if let rateLimit { configure.rateLimit = rateLimit > 0 ? rateLimit : nil }
        return configure
    }

    /// The limits of this command's own tasks, whichever process is the engine; nil for none.
    package var own: OwnLimits? {
        let rate = rateLimit.flatMap { $0 > 0 ? $0 : nil }
        let limits = OwnLimits(
            name: group, maxAction: jobs, rateLimit: rate, connections: connections, connectionsPerHost: perHost,
            requestRate: requestRate, contact: contact, shards: shards)
        return limits == OwnLimits(name: group) ? nil : limits
    }

    /// The orders of one shard among `count`: each limit divided by it, and at least 1.
    package func divided(by count: Int) -> Self {
        var orders = self
        orders.shards = count
        orders.perHost = perHost.map { max(1, $0 / count) }
        orders.jobs = jobs.map { max(1, $0 / count) }
        orders.rateLimit = rateLimit.map { $0 > 0 ? max(1, $0 / Int64(count)) : 0 }
        return orders
    }
}
