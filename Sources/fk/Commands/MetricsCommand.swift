import FKCore
import FKMiddleware
import Foundation

/// `fk metrics`: numbers about the work path for Prometheus.
struct MetricsCommand: Command {
    let context: CommandContext

    static let spec = CommandSpec(
        path: ["metrics"], summary: "print numbers about all tasks for Prometheus",
        discussion: [
            "Prints the text format of Prometheus: tasks by state, bytes, rate, retries, failed tasks by error code, and "
                + "paused hosts. For node_exporter's textfile collector, or a script. It only reads, and has no URL, host "
                + "or name of a file in it."
        ],
        examples: [
            .init("fk metrics > /var/lib/node_exporter/fk.prom.new", "then rename it to fk.prom"),
            .init("fk metrics --json", "the same numbers as one document"),
        ],
        make: { MetricsCommand(context: $1) })

    func run() async throws -> Int32 {
        let workPath = global.place
        var metrics = Metrics()
        if workPath.exists {
            try workPath.open(create: false)
            let answers = Answers(context)
            let reader = try StoreReader(withShardsOf: workPath)
            metrics.engineRuns = reader.isEngineRunning
            metrics.barrels = try reader.barrelNames().count
            metrics.rateLimit = try StandingLimit.read(in: workPath)
            let now = Date()
            // No record is kept: a work path may have a million.
            _ = try reader.records(
                where: { record in
                    metrics.add(record, now: now)
                    return false
                }, problem: { answers.warn([$0.description]) })
        }
        if global.json {
            JSONOutput(context.output).document(metrics.document)
        } else {
            context.output.write(metrics.text)
        }
        return ExitStatus.done
    }
}

/// Sums over the tasks of a work path.
struct Metrics: Sendable {
    private(set) var tasks = Dictionary(uniqueKeysWithValues: DownloadState.allCases.map { ($0.rawValue, 0) })
    /// Failed tasks by error code. Codes of middlewares count as `other`, so that the number of series is bounded.
    private(set) var errors: [String: Int] = [:]
    private(set) var receivedBytes: Int64 = 0
    private(set) var expectedBytes: Int64 = 0
    private(set) var unknownLengths = 0
    private(set) var bytesPerSecond: Int64 = 0
    private(set) var retries = 0
    private(set) var hostsPaused = 0
    var barrels = 0
    var engineRuns = false
    var rateLimit: Int64?
    private var pausedHosts: Set<String> = []

    /// The document of `fk metrics --json`.
    var document: JSON {
        func counts(_ counts: [String: Int]) -> JSON {
            .object(counts.sorted { $0.key < $1.key }.map { JSON.Member($0.key, JSON($0.value)) })
        }
        return .members([
            "barrels": JSON(barrels), "bytesPerSecond": .integer(bytesPerSecond), "engineRuns": .bool(engineRuns),
            "errors": counts(errors), "expectedBytes": .integer(expectedBytes), "hostsPaused": JSON(hostsPaused),
            "rateLimit": JSON(rateLimit), "receivedBytes": .integer(receivedBytes), "retries": JSON(retries),
            "tasks": counts(tasks), "unknownLengths": JSON(unknownLengths),
        ])
    }

    /// Counts a task.
    mutating func add(_ record: TaskRecord, now: Date) {
        tasks[record.state.rawValue, default: 0] += 1
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

    /// The text format of Prometheus, version 0.0.4.
    var text: String {
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
            DownloadState.allCases.map { ("{state=\"\($0.rawValue)\"}", Int64(tasks[$0.rawValue] ?? 0)) })
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
