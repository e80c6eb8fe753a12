import FKCore
import FKMiddleware

/// Looks after the task of a file that is read while it arrives. Its process may end, stop, or be asked to suspend the task, of
/// which the bytes alone say nothing.
///
/// ```text
/// no engine, or another one     the engine is asked to run the task; this process becomes it if there is none
/// a task of a shard, no engine  the reading ends
/// the engine is stopped         a warning; the reading waits
/// the task is suspended         the reading ends
/// ```
struct StreamWatch: Sendable {
    let id: TaskID
    let home: WorkPath
    /// Asks the engine to run the task; nil for a task of a shard.
    let run: (@Sendable () async throws -> Void)?
    let context: CommandContext
    /// Ends the reading.
    let onFailure: @Sendable (CommandFailure) -> Void

    /// The seconds between two looks.
    private static let pause = 0.25

    /// Looks until the Swift task is cancelled, or until the reading has to end.
    func look() async {
        var watch = EngineWatch(interval: Self.pause)
        var asked = EngineLock.holder(home)?.pid
        while true {
            try? await Task.sleep(for: .seconds(Self.pause))
            if Task.isCancelled { return }
            // The reader says what is wrong with a record that cannot be read.
            guard let record = try? StoreReader(home).record(id) else { continue }
            switch record.state {
            case .suspend:
                return fail("was suspended", context.global.suggested("fk resume \(id.short)") + " continues it.")
            case .idle, .action: break
            default: continue
            }
            let owner = EngineLock.holder(home)?.pid
            if owner != nil, let news = watch.look(EngineLock.content(home), now: EngineWatch.now) {
                context.errors.writeLine("fk: \(EngineText.text(news, pid: owner ?? 0))")
            }
            guard owner == nil || owner != asked else { continue }
            guard let run else {
                if owner != nil { continue }
                return fail(
                    "is not fetched any more: its process has ended",
                    "fk run --work-path \(home.root.shellWord) continues it.")
            }
            // A request that failed is made again at the next look.
            guard (try? await run()) != nil else { continue }
            asked = EngineLock.holder(home)?.pid
        }
    }

    private func fail(_ what: String, _ advice: String) {
        let url = (try? StoreReader(home).record(id)).map { $0.task.url.masked } ?? id.short
        onFailure(
            CommandFailure(
                "\(url) \(what). What was written before is a true prefix of the file. \(advice)",
                status: ExitStatus.taskFailed))
    }
}
