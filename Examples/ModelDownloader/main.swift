// The files of a model, each with its SHA-256, and a token for their host. Links may expire: every attempt requests the
// original URL again. After a kill, the next run continues.
//
//     MODEL_TOKEN=... ModelDownloader FOLDER SHA256 URL [SHA256 URL]...

import FKCore
import FKMiddleware
import Foundation

let arguments = CommandLine.arguments
let folder = URL(fileURLWithPath: arguments.count > 1 ? arguments[1] : ".")
let host = arguments.last.flatMap { URL(string: $0)?.host } ?? ""
let token = BearerTokenMiddleware { _ in ProcessInfo.processInfo.environment["MODEL_TOKEN"] }
let register = { (chains: MiddlewareChains) in _ = chains.register(request: token, for: .host(host)) }
let configure = Configure(workPath: folder.appendingPathComponent(".work"))
let failures = try await withDownloader(configure, middlewares: register) { downloader in
    var tasks: [DownloadTask] = []
    for index in stride(from: 2, to: arguments.count - 1, by: 2) {
        let checksum = try Checksum(.sha256, hex: arguments[index])
        tasks.append(try await downloader.add(arguments[index + 1], to: folder, checksum: checksum))
    }
    var failures = 0
    for task in tasks {
        var last: Int64 = 0
        for await progress in task.progress {
            let isStalled = progress.state == .action && progress.received == last
            let state = isStalled ? "stalled" : progress.state.rawValue
            print("\(state) \(progress.received) of \(progress.expected ?? 0) bytes")
            last = progress.received
        }
        do throws(DownloadError) {
            print("complete: \(try await task.file.path)")
        } catch {
            print("failed: \(error)")
            failures += 1
        }
    }
    return failures
}
exit(failures == 0 ? 0 : 1)
