import FKCore
import FKEngine
import FKStore
import FKTesting
import FKTransport
import Foundation

/// An application with one download in the background, for tests that kill it: `BackgroundApp FOLDER URL VERB [SEED]`.
///
/// | verb | |
/// | --- | --- |
/// | run | adds the task, and ends when it has settled, or after two seconds |
/// | events | was woken by the system: ends when the completion handler is called, which writes a line to `FOLDER/log` |
/// | suspend | suspends the task |
///
/// A seed other than 0 makes the model of the system do things wrong.
@main
struct App {
    static func main() async throws {
        let words = CommandLine.arguments
        let folder = URL(fileURLWithPath: words[1], isDirectory: true)
        let seed = words.count > 4 ? UInt64(words[4]) ?? 0 : 0
        let system = SystemModel(folder: folder.appendingPathComponent("system")) {
            Self.fault(of: $0, seed, in: folder)
        }
        var configure = Configure(workPath: folder.appendingPathComponent("work"))
        configure.retry.baseDelay = .milliseconds(20)
        configure.retry.maxDelay = .milliseconds(50)
        configure.retry.maxAttempts = 20
        configure.background = system.session()
        configure.background?.pieceSize = 64 << 10
        let downloader = try Downloader(configure)
        var builder = try Builder(words[2])
        builder.folder = folder.appendingPathComponent("out", isDirectory: true)
        let id = builder.id
        let workPath = WorkPath(configure.workPath)
        let log: @Sendable (String) async -> Void = { verb in
            // The process is not suspended: what is on the disk is read later, and cannot have less.
            let info = await downloader.messager.info(id)
            let stored = try? StoreReader(workPath).record(id)
            let line =
                "\(verb) \(stored?.received ?? -1) \(info?.count.received ?? -1) \(info?.state.rawValue ?? "unknown")\n"
            let file = folder.appendingPathComponent("log").path
            let descriptor = open(file, O_WRONLY | O_CREAT | O_APPEND, 0o600)
            _ = line.withCString { write(descriptor, $0, strlen($0)) }
            close(descriptor)
        }
        switch words[3] {
        case "events":
            downloader.handleBackgroundEvents(identifier: "model") {
                Task {
                    await log("called")
                    exit(0)
                }
            }
            downloader.activateQueue()
            try await Task.sleep(for: .seconds(60))
            exit(3)
        case "suspend":
            try await downloader.control.suspend(.id(id))
            await downloader.close()
        default:
            // The system may keep a piece until the next launch.
            Task {
                try await Task.sleep(for: .seconds(2))
                exit(0)
            }
            downloader.activateQueue()
            // The user has pressed the button again: a suspended task goes on.
            _ = try await downloader.add(builder)
            _ = await downloader.messager.finished(id)
            await log("ended")
            exit(0)
        }
    }

    /// A fault happens to a piece once.
    private static func fault(of key: PieceKey, _ seed: UInt64, in folder: URL) -> SystemModel.Fault? {
        guard seed > 0, mkdir(folder.appendingPathComponent("\(key)").path, 0o700) == 0 else { return nil }
        let number = PieceKey.fingerprint([key.description, String(seed)]) >> 8 % 12
        let faults = SystemModel.Fault.allCases
        return number < faults.count ? faults[Int(number)] : nil
    }
}
