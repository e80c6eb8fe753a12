import FKCore
import FKManifests
import FKMiddleware
import Foundation

/// `fk cat`: the bytes of files in order on standard output, and nothing else there.
///
/// A URL is a stream, which nobody keeps; with --keep it is a task as of `fk get`, and is read while it arrives. A task that is complete or
/// that another process fetches is read where it is.
struct CatCommand: Command {
    let options: CatOptions
    let context: CommandContext

    static let spec = CommandSpec(
        path: ["cat"], summary: "write files to standard output, in order",
        discussion: [
            "Writes the bytes of the files to standard output while they arrive, one file after the other, and nothing else. Lost "
                + "connections are resumed, several connections are used as by fk get, and no byte comes twice. Nothing of the files is left "
                + "at the end, and at most --window is on the disk meanwhile.",
            "A file that changes meanwhile, a connection that is lost where the server cannot resume, or a digest that differs ends the "
                + "command with status 1. What came out before is a true prefix. With digests of pieces (--metalink, -i) only proven bytes "
                + "come out; with a digest of the whole file, a wrong one shows at its end.",
            "A known task, complete or running, is read and not fetched again; one that is suspended, failed or waiting is resumed if it is "
                + "named by its id, name or path. If the process that fetches it ends, this one goes on; if the task is suspended, the "
                + "command ends with status 1. Reading stops at the first failure.",
        ],
        operands: [
            OperandSpec(
                "url", "what to write: http or https URLs, or tasks by their ids, files' names or paths", 0, nil,
                hint: .tasks)
        ],
        options: CatOptions.specs, refusedOptions: ["json"],
        examples: [
            .init("fk cat https://example.com/a.tar.zst | tar -x --zstd", "unpack without keeping the archive"),
            .init("fk cat --range 0-511 https://example.com/a.img | xxd", "the first 512 bytes"),
            .init(
                "fk cat --checksum sha-256=2cf2… https://example.com/a.iso > /dev/sdX", "status 1 if the digest differs"
            ),
        ],
        make: { try CatCommand(options: CatOptions($0, $1), context: $1) })

    func run() async throws -> Int32 {
        try await StreamRun(context).run(
            stopped: options.keep
                ? "Stopped. The received bytes are kept: the same command writes all bytes again, and fetches the rest."
                : "Stopped. Nothing of a stream is kept: the same command begins again."
        ) { try await copyAll($0) }
    }

    // MARK: Files

    private func copyAll(_ run: StreamRun) async throws -> Int32 {
        let (tasks, refused) = try await resolve()
        let configure = options.run.orders.settingsForAll(over: global.configure)
        let known = try global.place.exists ? global.openQuery() : nil
        let files = try await files(tasks, known)
        let needsEngine = files.contains(where: \.needsEngine)
        let downloader = try Downloader.forCommand(configure, takesOver: needsEngine)
        run.opened(downloader)
        if needsEngine { downloader.activateQueue() }
        let output = StreamOutput(context.output.descriptor)
        let line = StreamProgress(context, isTerminalFree: !context.outputTerminal(.never).isTerminal)
        for file in files {
            let bytes = try await bytes(of: file, in: downloader)
            let failure = Locked<CommandFailure?>(nil)
            let watch = watch(file, in: downloader) { error in
                failure.withLock { $0 = error }
                run.cancelWork()
            }
            defer { watch?.cancel() }
            var iterator = bytes.makeAsyncIterator()
            do {
                while let chunk = try await iterator.next() {
                    if let code = await output.write(chunk) { return try ended(code, line) }
                    line.add(chunk.count, of: length(iterator.length))
                }
            } catch let error as DownloadError {
                line.clear()
                if let failure = failure.withLock({ $0 }) { throw failure }
                // The file has failed, and not the work path or the name.
                throw CommandFailure(error.fullText, status: ExitStatus.taskFailed)
            }
            line.clear()
        }
        return refused > 0 ? ExitStatus.taskFailed : ExitStatus.done
    }

    /// The number of bytes that are wanted.
    private func length(_ length: Int64?) -> Int64? {
        guard let length, let range = options.range else { return length }
        return max(0, min(length, range.upperBound) - range.lowerBound)
    }

    /// Standard output does not take more.
    private func ended(_ code: Int32, _ line: StreamProgress) throws -> Int32 {
        line.clear()
        if code == EPIPE { return SignalTrap.exitStatus(SIGPIPE) }
        throw CommandFailure(
            "The bytes could not be written to standard output: \(String(cString: strerror(code))).",
            status: ExitStatus.taskFailed)
    }

    private enum Source {
        /// Fetched here, and not kept.
        case stream(TaskDescription)
        /// Fetched, or fetched on, and kept.
        case resumed(TaskDescription?, TaskID, url: String)
        /// Complete.
        case there(TaskID, url: String)
        /// Fetched by another process. If that ends, this one goes on.
        case running(TaskID, url: String)
        /// Complete, or fetched by another process, in the work path of a shard.
        case shard(TaskID, WorkPath)

        /// True if this process may have to fetch the file.
        var needsEngine: Bool {
            switch self {
            case .resumed, .running: true
            case .stream, .there, .shard: false
            }
        }
    }

    /// Asks servers for lists and digests.
    private func resolve() async throws -> (tasks: [TaskDescription], refused: Int) {
        let transport = try PacedTransport(options.run.configure(global), options.run.own, onWait: context.tellWait)
        defer { transport.shutdown() }
        let (tasks, refused, _) = try await options.input.resolve(context, over: transport)
        return (try tasks.all(), refused)
    }

    private func files(_ tasks: [TaskDescription], _ reader: StoreReader?) async throws -> [Source] {
        var rest = tasks[...]
        var files: [Source] = []
        for item in options.items {
            switch item {
            case .task(let reference):
                guard let reader else {
                    throw DownloadError(.notFound, "There is no task: the work path does not exist.")
                }
                let record = try reference.only(reader)
                files.append(try there(record, reader) ?? resumed(record, reader))
            case .url:
                if let task = rest.popFirst() { files.append(try source(of: task, reader)) }
            }
        }
        return try files + rest.map { try source(of: $0, reader) }
    }

    private func source(of task: TaskDescription, _ reader: StoreReader?) throws -> Source {
        // Another folder or name is another file.
        let id = options.keep ? global.place.places.id(of: task) : nil
        if let reader, let records = try? reader.records(url: task.url) {
            let known = records.lazy.filter { (id == nil || $0.id == id) && isSame($0, task) }
            if let there = known.compactMap({ there($0, reader) }).first { return there }
        }
        guard let id else { return .stream(task) }
        return .resumed(task, id, url: task.url)
    }

    /// A task whose bytes are there, or arrive by another process; nil for any other one.
    private func there(_ record: TaskRecord, _ reader: StoreReader) -> Source? {
        let home = reader.home(of: record.id)
        switch record.state {
        case .complete where (try? record.readFile(home: home.destination(of: record))) != nil: break
        case .action where EngineLock.isHeld(home): break
        default: return nil
        }
        guard home.root == global.place.root else { return .shard(record.id, home) }
        let url = record.task.url
        return record.state == .complete ? .there(record.id, url: url) : .running(record.id, url: url)
    }

    private func resumed(_ record: TaskRecord, _ reader: StoreReader) throws -> Source {
        let home = reader.home(of: record.id)
        guard home.root == global.place.root else {
            throw CommandFailure(
                "\(record.id.short) is a task of a shard, which has not fetched it. fk cat with --work-path "
                    + "\(home.root.shellWord) fetches it.", status: ExitStatus.usage)
        }
        // A finished file that somebody has changed is an error, and not fetched again under another name.
        if record.state == .complete, record.isFileGone == false {
            _ = try record.readFile(home: home.destination(of: record))
        }
        return .resumed(nil, record.id, url: record.task.url)
    }

    /// False if the command asks for another digest than the known file has.
    private func isSame(_ record: TaskRecord, _ task: TaskDescription) -> Bool {
        guard let checksum = task.optionsBox?.value.checksum else { return true }
        return record.task.optionsBox?.value.checksum == checksum
    }

    private func bytes(of file: Source, in downloader: Downloader) async throws -> DownloadedBytes {
        switch file {
        case .stream(let task):
            return try await downloader.stream(Builder(description: task), range: options.range, window: options.window)
        case .there(let id, let url), .running(let id, let url): return part(of: DownloadTask(id, url, in: downloader))
        case .shard(let id, let home):
            return DownloadTask.bytes(of: id, in: home, from: options.range?.lowerBound ?? 0, to: end)
        case .resumed(let task, let id, let url):
            if let task {
                let added = try await downloader.engine.perform(
                    .add(tasks: [task], barrel: nil, run: true), own: options.run.own)
                if let error = added.first?.error { throw error }
            } else {
                _ = try await downloader.engine.perform(.line(.run(.id(id))), own: options.run.own)
                if try await downloader.engine.snapshot({ try $0.infos([id]) }).first?.state != .action {
                    _ = try await downloader.control.retry(.id(id))
                    _ = try await downloader.control.resume(.id(id))
                }
            }
            return part(of: DownloadTask(id, url, in: downloader))
        }
    }

    /// Looks after a task that may be in the hands of another process.
    private func watch(
        _ file: Source, in downloader: Downloader, onFailure: @escaping @Sendable (CommandFailure) -> Void
    ) -> Task<Void, Never>? {
        let watch: StreamWatch
        switch file {
        case .stream, .there: return nil
        case .shard(let id, let home):
            watch = StreamWatch(id: id, home: home, run: nil, context: context, onFailure: onFailure)
        case .running(let id, _), .resumed(_, let id, _):
            let own = options.run.own
            watch = StreamWatch(
                id: id, home: global.place,
                run: { _ = try await downloader.engine.perform(.line(.run(.id(id))), own: own) }, context: context,
                onFailure: onFailure)
        }
        return Task { await watch.look() }
    }

    private func part(of task: DownloadTask) -> DownloadedBytes {
        task.bytes(from: options.range?.lowerBound ?? 0, to: end)
    }

    private var end: Int64? { options.range.flatMap { $0.upperBound == .max ? nil : $0.upperBound } }
}
