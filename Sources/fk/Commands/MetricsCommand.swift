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
        var metrics = DownloadMetrics()
        if workPath.exists {
            try workPath.open(create: false)
            let answers = Answers(context)
            let reader = try StoreReader(withShardsOf: workPath).reportingSilence(context)
            metrics = try DownloadMetrics(reader, now: Date()) { answers.warn([$0.description]) }
        }
        if global.json {
            JSONOutput(context.output).document(metrics.document)
        } else {
            context.output.write(metrics.prometheus)
        }
        return ExitStatus.done
    }
}

extension DownloadMetrics {
    var document: JSON {
        func counts(_ counts: [String: Int]) -> JSON {
            .object(counts.sorted { $0.key < $1.key }.map { JSON.Member($0.key, JSON($0.value)) })
        }
        return .members([
            "barrels": JSON(barrels), "bytesPerSecond": .integer(bytesPerSecond), "engineRuns": .bool(engineRuns),
            "errors": counts(errors), "expectedBytes": .integer(expectedBytes), "hostsPaused": JSON(hostsPaused),
            "rateLimit": JSON(rateLimit), "receivedBytes": .integer(receivedBytes), "retries": JSON(retries),
            "tasks": counts(states.reduce(into: [:]) { $0[$1.key.rawValue] = $1.value }),
            "unknownLengths": JSON(unknownLengths),
        ])
    }
}
