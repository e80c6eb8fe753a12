import FKEngine
import FKMiddleware
import Foundation

/// Numbers about all tasks of a work path, for monitoring (`Downloader.metrics()`). `fk metrics` prints them.
public struct DownloadMetrics: Codable, Sendable, Hashable {
    /// The number of tasks in each state. Unlike `BarrelInfo.states`, it has every state, also those without tasks.
    public private(set) var states: [DownloadState: Int]
    /// Failed tasks by error code. Codes of middlewares count as `other`, so that the number of series is bounded.
    public private(set) var errors: [String: Int] = [:]
    /// Bytes that the tasks have received.
    public private(set) var receivedBytes: Int64 = 0
    /// Bytes of all files whose length is known.
    public private(set) var expectedBytes: Int64 = 0
    /// The number of tasks whose length is not known.
    public private(set) var unknownLengths = 0
    /// The speed of the running tasks together.
    public private(set) var bytesPerSecond: Int64 = 0
    /// Attempts after the first one of each task.
    public private(set) var retries = 0
    /// Hosts that asked for a pause which has not ended.
    public private(set) var hostsPaused = 0
    /// The number of barrels.
    public private(set) var barrels = 0
    /// True while a process runs the downloads of the work path.
    public private(set) var engineRuns = false
    /// The limit of all tasks in bytes a second: the lower one of `Control.setRateLimit` and the downloader's `Configure.rateLimit`; nil
    /// for none.
    public package(set) var rateLimit: Int64?
    private var pausedHosts: Set<String> = []

    private enum CodingKeys: String, CodingKey {
        case states, errors, receivedBytes, expectedBytes, unknownLengths, bytesPerSecond, retries, hostsPaused, barrels
        case engineRuns, rateLimit
    }

    package init() { states = Dictionary(uniqueKeysWithValues: DownloadState.allCases.map { ($0, 0) }) }

    /// Reads a work path. No record is kept in memory: there may be a million.
    ///
    /// - Parameter problem: is called for each record that cannot be read.
    package init(
        _ reader: StoreReader, now: Date, problem: @escaping (DownloadError) -> Void = { _ in }
    ) throws {
        self.init()
        engineRuns = reader.isEngineRunning
        barrels = try reader.barrelNames().count
        rateLimit = try StandingLimit.read(in: reader.workPath)
        var sums = self
        _ = try reader.records(
            where: { record in
                sums.add(record, now: now)
                return false
            }, problem: problem)
        self = sums
    }

    /// Counts a task.
    package mutating func add(_ record: TaskRecord, now: Date) {
        states[record.state, default: 0] += 1
        receivedBytes += record.received
        if let expected = record.expected ?? (record.state == .complete ? record.received : nil) {
            expectedBytes += expected
        } else {
            unknownLengths += 1
        }
        if record.state == .action { bytesPerSecond += record.bytesPerSecond ?? 0 }
        retries += max(0, record.attempts - 1)
        if record.state == .error {
            let code = record.error?.code
            errors[code.flatMap { DownloadError.Code.known.contains($0) ? $0.rawValue : nil } ?? "other", default: 0] +=
                1
        }
        if let waiting = record.waiting, let host = waiting.host, let until = waiting.until, until > now,
            pausedHosts.insert(host).inserted
        {
            hostsPaused += 1
        }
    }

    /// The text format of Prometheus, version 0.0.4, as `fk metrics` prints it. It has no URL, host or name of a file.
    public var prometheus: String {
        var lines: [String] = []
        func series(_ name: String, _ help: String, _ samples: [(labels: String, value: Int64)]) {
            lines += ["# HELP \(name) \(help)", "# TYPE \(name) gauge"]
            lines += samples.map { "\(name)\($0.labels) \($0.value)" }
        }
        func number(_ name: String, _ help: String, _ value: Int64) { series(name, help, [("", value)]) }
        series("fk_info", "The version of fk.", [("{version=\"\(Version.text)\"}", 1)])
        number("fk_engine_running", "1 while a process runs the downloads of the work path.", engineRuns ? 1 : 0)
        series(
            "fk_tasks", "Tasks by state.",
            DownloadState.allCases.map { ("{state=\"\($0.rawValue)\"}", Int64(states[$0] ?? 0)) })
        series(
            "fk_task_errors", "Failed tasks by error code.",
            errors.sorted { $0.key < $1.key }.map { ("{code=\"\($0.key)\"}", Int64($0.value)) })
        number("fk_received_bytes", "Bytes that the tasks have received.", receivedBytes)
        number("fk_expected_bytes", "Bytes of all files whose length is known.", expectedBytes)
        number("fk_unknown_length_tasks", "Tasks whose length is not known.", Int64(unknownLengths))
        number("fk_bytes_per_second", "The speed of the running tasks together.", bytesPerSecond)
        number("fk_rate_limit_bytes_per_second", "The limit of all tasks; 0 is none.", rateLimit ?? 0)
        number("fk_retries", "Attempts after the first one of each task.", Int64(retries))
        number("fk_hosts_paused", "Hosts that asked to be left alone for a while.", Int64(hostsPaused))
        number("fk_barrels", "Barrels of the work path.", Int64(barrels))
        return lines.joined(separator: "\n") + "\n"
    }
}
