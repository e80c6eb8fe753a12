import FKCore
import FKMiddleware
import FKRPC
import Foundation

/// The program: it opens the work path, serves until a signal or a client ends it, and keeps everything.
enum RPCProgram {
    /// Why the program ends.
    enum End: Sendable {
        case signal(Int32)
        /// A client has asked for it. `isForced` waits no longer than a second.
        case client(isForced: Bool)

        /// The time to close. SIGTERM has to end every stage within 3 seconds.
        var limit: Duration {
            switch self {
            case .signal(SIGTERM): .milliseconds(2_500)
            case .client(isForced: true): .milliseconds(800)
            default: .seconds(60)
            }
        }
    }

    /// - Returns: the exit status: 0 for a client's shutdown, 2 for refused options, 3 for an unusable work path, 130 or 143
    ///   for a signal.
    static func run(_ words: [String]) async -> Int32 {
        do {
            let words = try ProgramWords(words)
            return try await serve(words, words.listenOptions())
        } catch let error as ListenOptions.Fault {
            say(error.message)
            return 2
        } catch let error as DownloadError {
            say(error.message)
            switch error.code {
            case .workPathUnusable, .workPathBusy, .laterVersion, .noSpace, .disk: return 3
            default: return 2
            }
        } catch {
            say("\(error)")
            return 1
        }
    }

    private static func serve(_ words: ProgramWords, _ options: ListenOptions) async throws -> Int32 {
        let (ends, continuation) = AsyncStream.makeStream(of: End.self)
        let downloader = try Downloader(words.configure, role: .either)
        let secret = try secret(options, workPath: words.workPath)
        var settings = RPCSettings(folders: words.all("folder"), secret: secret?.text)
        settings.log = { say($0) }
        settings.onShutdown = { continuation.yield(.client(isForced: $0)) }
        let service = RPCService(downloader, settings, workPath: words.workPath)
        let server = try WebServer(options, service, page: PageFile.all)
        let signals = SignalWatch { continuation.yield(.signal($0)) }
        downloader.activateQueue()
        await service.start()
        server.start()
        announce(options, server, secret, words)
        let problems = Task {
            while !Task.isCancelled {
                try await Task.sleep(for: .seconds(2))
                for problem in await downloader.takeProblems() { say(problem.message) }
            }
        }
        var end = End.client(isForced: false)
        for await next in ends {
            end = next
            break
        }
        problems.cancel()
        await within(end.limit) { [end] in
            server.stop()
            await service.stop()
            if case .signal(SIGTERM) = end { downloader.hurry() }
            await downloader.close()
        }
        withExtendedLifetime(signals) {}
        guard case .signal(let number) = end else { return 0 }
        if !words.has("quiet") { say("stopped; everything is kept. The next fk rpc continues it.") }
        return 128 + number
    }

    /// Returns when the work is done, or after the limit: what takes longer is left to the next start, as after a kill. A
    /// task group would wait for the work all the same.
    private static func within(_ limit: Duration, _ work: @escaping @Sendable () async -> Void) async {
        let (ends, continuation) = AsyncStream.makeStream(of: Void.self)
        Task {
            await work()
            continuation.yield()
        }
        Task {
            try? await Task.sleep(for: limit)
            continuation.yield()
        }
        for await _ in ends { return }
    }

    /// The secret; nil without one.
    private static func secret(
        _ options: ListenOptions, workPath: String
    ) throws -> (text: String, file: String, isNew: Bool)? {
        if options.hasNoSecret { return nil }
        if let file = options.secretFile { return (try SecretFile.read(file), file, false) }
        let (secret, isNew) = try SecretFile.readOrMake(in: workPath)
        return (secret, "\(workPath)/\(SecretFile.name)", isNew)
    }

    private static func announce(
        _ options: ListenOptions, _ server: WebServer, _ secret: (text: String, file: String, isNew: Bool)?,
        _ words: ProgramWords
    ) {
        let url = options.url(port: Int(server.port))
        if words.has("json") {
            write(
                JSON.members([
                    "event": "listening", "url": .string(url), "rpc": .string("\(url)jsonrpc"),
                    "secretFile": JSON(secret?.file), "time": JSON(Date()),
                ]).bytes + [0x0a])
            return
        }
        var lines = ["page: \(url)", "RPC: \(url)jsonrpc"]
        if let secret {
            lines.append(
                secret.isNew
                    ? "secret: \(secret.text), stored in \(Escaping.visible(secret.file))"
                    : "secret: in \(Escaping.visible(secret.file))")
        } else {
            lines.append("secret: none; every program of this machine can use it")
        }
        write(Array((lines.joined(separator: "\n") + "\n").utf8))
    }

    private static func write(_ bytes: [UInt8]) { FileHandle.standardOutput.write(Data(bytes)) }

    /// Writes a line about the program to standard error.
    static func say(_ text: String) {
        FileHandle.standardError.write(Data("fk rpc: \(Escaping.visible(text))\n".utf8))
    }
}

/// Turns SIGINT, SIGTERM and SIGHUP into calls. The second signal ends the process at once.
/// `@unchecked` because sources are not Sendable; nothing uses them after `init`.
final class SignalWatch: @unchecked Sendable {
    private let sources: [any DispatchSourceSignal]

    init(onSignal: @escaping @Sendable (Int32) -> Void) {
        let count = Locked(0)
        sources = [SIGINT, SIGTERM, SIGHUP].map { number in
            signal(number, SIG_IGN)
            let source = DispatchSource.makeSignalSource(signal: number, queue: .global())
            source.setEventHandler {
                let isSecond = count.withLock { count in
                    count += 1
                    return count > 1
                }
                if isSecond { _exit(128 + number) }
                onSignal(number)
            }
            source.resume()
            return source
        }
    }
}
