// The files of a model, each with its SHA-256, as a folder that is absent, old or complete and new, and a token for their host. At the next
// start the folder is ready at once. After a kill, the next run continues. Other arguments are another version: equal files are kept.
//
//     MODEL_TOKEN=... ModelDownloader FOLDER SHA256 URL [SHA256 URL]...

import FKCore
import FKMiddleware
import Foundation

let arguments = CommandLine.arguments
let folder = URL(fileURLWithPath: arguments.count > 1 ? arguments[1] : ".")
let token = BearerTokenMiddleware { _ in ProcessInfo.processInfo.environment["MODEL_TOKEN"] }
let host = arguments.last.flatMap { URL(string: $0)?.host } ?? ""
let register = { (chains: MiddlewareChains) in _ = chains.register(request: token, for: .host(host)) }
var configure = Configure(workPath: folder.appendingPathComponent(".work"))
configure.diskBudget = 20 << 30  // models that were not used for the longest time go
let isWhole = try await withDownloader(configure, middlewares: register) { downloader in
    await downloader.onTrim { print("deleted", $0.barrels, $0.files.count, "files,", $0.freedBytes, "bytes freed") }
    let model = try await downloader.barrel("model")
    let entries = try stride(from: 2, to: arguments.count - 1, by: 2).map { index in
        var file = try Builder(arguments[index + 1])
        file.folder = folder
        file.options.checksum = try Checksum(.sha256, hex: arguments[index])
        return file
    }
    let changes = try await model.set(entries, leaving: .trash)
    for failure in changes.failures { print(failure.entry.url, failure.error.message) }
    if case .ready(let version) = await model.state { print("version", version, "is there") }
    for await sum in model.progress {
        let silent = await model.memberInfos.filter { $0.state == .action && ($0.lastByteAt ?? .now) < .now - 2 }
        print(sum.count.received, "of", sum.count.expected ?? 0, "bytes,", silent.count, "files without data for 2 s")
    }
    guard case .files = try await model.complete() else {
        for (task, error) in await model.failures { print(task.url, error.message) }
        return false
    }
    let set = try await model.publish(to: folder.appendingPathComponent("model"))
    print("version", set.version, set.isChanged ? "is published" : "was published before")
    try await model.withFiles { files in for file in files { print(file.path) } }
    return changes.failures.isEmpty
}
exit(isWhole ? 0 : 1)
