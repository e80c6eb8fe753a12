// A service that downloads files as child tasks of one group, each with a time limit. It shuts down gracefully.
//
//     FileService FOLDER SECONDS URL...
//
// SIGTERM and SIGINT cancel the group: running downloads are suspended with their bytes, and the next run continues.
// Exit status: 0 when all files are there, 1 when some failed, 3 when it was stopped.

import FKCore
import FKMiddleware
import Foundation

struct TimeLimit: Error {}

/// Fetches a file, or throws `TimeLimit`. A file that took too long is suspended with its bytes.
func fetch(_ url: String, with downloader: Downloader, to folder: URL, within limit: Duration) async throws -> URL? {
    try await withThrowingTaskGroup(of: URL?.self) { group in
        group.addTask { try await downloader.download(url, to: folder) }
        group.addTask {
            try await Task.sleep(for: limit)
            throw TimeLimit()
        }
        defer { group.cancelAll() }
        return try await group.next() ?? nil
    }
}

let arguments = Array(CommandLine.arguments.dropFirst())
guard arguments.count > 2, let seconds = Int(arguments[1]) else {
    print("usage: FileService FOLDER SECONDS URL...")
    exit(2)
}
let folder = URL(fileURLWithPath: arguments[0])
var configure = Configure(workPath: folder.appendingPathComponent(".work"))
configure.maxAction = 8

let service = Task { [configure] in
    try await withDownloader(configure) { downloader in
        await withTaskGroup(of: Bool.self) { group in
            for url in arguments.dropFirst(2) {
                group.addTask {
                    do {
                        let file = try await fetch(url, with: downloader, to: folder, within: .seconds(seconds))
                        print("complete: \(file?.path ?? url)")
                        return true
                    } catch is TimeLimit {
                        print("too slow: \(url)")
                    } catch {
                        if !Task.isCancelled { print("failed: \(error)") }
                    }
                    return false
                }
            }
            var failures = 0
            for await isComplete in group where !isComplete { failures += 1 }
            return failures
        }
    }
}

let signals = [SIGTERM, SIGINT].map { number in
    signal(number, SIG_IGN)
    let source = DispatchSource.makeSignalSource(signal: number)
    source.setEventHandler { service.cancel() }
    source.resume()
    return source
}
let failures = try await service.value
if service.isCancelled { print("stopped: run it again to continue") }
exit(service.isCancelled ? 3 : failures == 0 ? 0 : 1)
