import FKCore
import FKMiddleware
import FKRPC
import Foundation

/// `fk rpc`: it opens the work path, serves until a signal or a client ends it, and keeps everything.
package enum RPCProgram {
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

    /// - Returns: the exit status: 0 for a client's shutdown, 1 without libwebsockets, 2 for refused options, 3 for an unusable
    ///   work path, 130 or 143 for a signal.
    package static func run(_ settings: WebSettings) async -> Int32 {
        do {
            return try await serve(settings, settings.listenOptions(), WebSocketsLibrary.load())
        } catch let error as WebSocketsLibrary.Missing {
            say(error.message)
            return 1
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

    private static func serve(
        _ asked: WebSettings, _ options: ListenOptions, _ library: WebSocketsLibrary
    ) async throws -> Int32 {
        let (ends, continuation) = AsyncStream.makeStream(of: End.self)
        let downloader = try Downloader(asked.configure, role: .either)
        let secret = try secret(options, workPath: asked.workPath)
        var settings = RPCSettings(folders: asked.folders, secret: secret?.text)
        settings.log = { say($0) }
        settings.tool = ToolProgram.path
        settings.refusesPrivate = asked.orders.noPrivate
        settings.onIdle = returnFreedMemory
        settings.onShutdown = { continuation.yield(.client(isForced: $0)) }
        let service = RPCService(downloader, settings, workPath: asked.workPath)
        let server = try WebServer(options, service, library, page: PageFile.all)
        let signals = SignalWatch { continuation.yield(.signal($0)) }
        downloader.activateQueue()
        await service.start()
        server.start()
        announce(options, server, secret, asked)
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
        if !asked.isQuiet { say("stopped; everything is kept. The next fk rpc continues it.") }
        return 128 + number
    }

    /// Gives memory back to the system that many tasks have needed. The C library keeps it, because small blocks that are still
    /// in use lie behind it.
    private static func returnFreedMemory() {
        #if canImport(Glibc)
            // malloc.h is missing in the headers that Swift imports.
            guard let symbol = dlsym(nil, "malloc_trim") else { return }
            _ = unsafeBitCast(symbol, to: (@convention(c) (Int) -> Int32).self)(0)
        #endif
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
        _ asked: WebSettings
    ) {
        let url = options.url(port: Int(server.port))
        if asked.isJSON {
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
                // Not into a journal or a log, which others read.
                secret.isNew && isatty(STDOUT_FILENO) == 1
                    ? "secret: \(secret.text), stored in \(secret.file.visible)"
                    : "secret: in \(secret.file.visible)")
        } else {
            lines.append("secret: none; every program of this machine can use it")
        }
        write(Array((lines.joined(separator: "\n") + "\n").utf8))
    }

    private static func write(_ bytes: [UInt8]) { FileHandle.standardOutput.write(Data(bytes)) }

    /// Writes a line about the program to standard error.
    static func say(_ text: String) {
        FileHandle.standardError.write(Data("fk rpc: \(text.visible)\n".utf8))
    }
}

/// This program, which carries out commands of the page.
private enum ToolProgram {
    /// Its path; nil if the system does not tell it.
    static var path: String? {
        #if os(Linux)
            try? FileManager.default.destinationOfSymbolicLink(atPath: "/proc/self/exe")
        #else
            Bundle.main.executablePath
        #endif
    }
}

/// Turns SIGINT, SIGTERM and SIGHUP into calls. The second signal ends the process at once. What comes within 100 ms counts as the
/// first one: `timeout` signals the process and then its group.
/// `@unchecked` because sources are not Sendable; nothing uses them after `init`.
final class SignalWatch: @unchecked Sendable {
    private let sources: [any DispatchSourceSignal]

    init(onSignal: @escaping @Sendable (Int32) -> Void) {
        let first = Locked<ContinuousClock.Instant?>(nil)
        sources = [SIGINT, SIGTERM, SIGHUP].map { number in
            signal(number, SIG_IGN)
            let source = DispatchSource.makeSignalSource(signal: number, queue: .global())
            source.setEventHandler {
                let now = ContinuousClock.now
                let before = first.withLock { first in
                    defer { first = first ?? now }
                    return first
                }
                guard let before else { return onSignal(number) }
                if now - before >= .milliseconds(200) { _exit(128 + number) }
            }
            source.resume()
            return source
        }
    }
}
