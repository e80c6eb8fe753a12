// The three ways to follow a task: a polled callback, an asynchronous sequence, and a single query.
//
//     PollingInfo [--limit-rate BYTES] URL...
//
// The files go into a temporary work path and are deleted at the end. Exit status: 0 when all files arrived.

import FKCore
import FKMiddleware
import Foundation

func describe(_ info: DownloadInfo) -> String {
    let expected = info.count.expected.map(String.init) ?? "?"
    // Received since the last report to this listener: FKDownloader's `previousReceived`.
    let more = info.count.received - info.count.previousReceived
    return "\(info.state.rawValue), \(info.count.received) of \(expected) bytes, \(more) more"
}

/// Downloads the URLs one after the other and returns how many of them failed.
func download(_ urls: [String], rateLimit: Int64?) async throws -> Int {
    let workPath = FileManager.default.temporaryDirectory.appendingPathComponent("fk-\(UUID().uuidString)")
    defer { try? FileManager.default.removeItem(at: workPath) }
    var configure = Configure(workPath: workPath)
    // The interval of the callbacks. The default is one second.
    configure.progressInterval = .milliseconds(200)
    configure.rateLimit = rateLimit
    let downloader = try Downloader(configure)
    let messager = downloader.messager

    var failures = 0
    for url in urls {
        // 1. A callback. It can be registered before the task exists, and never runs on the main thread. `keep()` lets it
        // live as long as the downloader; without it, it ends with its registration.
        try await messager.addInfo(url) { print("callback  \(describe($0))") }.keep()

        let id = try await downloader.add(url).id
        // Tasks can be added before the queue is activated; nothing runs before. A second call has no effect.
        downloader.activateQueue()

        // 2. An asynchronous sequence. It ends after the task is complete, in error, cancelled or gone. A slow reader
        // receives the newest info and skips older ones.
        for await info in messager.infos(id) {
            print("sequence  \(describe(info))")
        }

        // 3. A query, at any time.
        let info = await messager.info(id)
        print("one-shot  \(info?.state.rawValue ?? "unknown"), file \(info?.fileURL?.path ?? "-")")
        if let error = info?.error { print("failed    \(url): \(error.message)") }
        if info?.state != .complete { failures += 1 }
    }
    // Returns after the last callback.
    await downloader.close()
    return failures
}

var arguments = Array(CommandLine.arguments.dropFirst())
var rateLimit: Int64?
if arguments.first == "--limit-rate", arguments.count > 1 {
    rateLimit = Int64(arguments[1])
    arguments.removeFirst(2)
}
guard !arguments.isEmpty else {
    print("usage: PollingInfo [--limit-rate BYTES] URL...")
    exit(2)
}
do {
    exit(try await download(arguments, rateLimit: rateLimit) == 0 ? 0 : 1)
} catch {
    print("failed    \(error)")
    exit(1)
}
