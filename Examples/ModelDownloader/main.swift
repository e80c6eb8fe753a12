// The files of a model, each with its SHA-256, and a token for their host. Links may expire: every attempt requests the
// original URL again. After a kill, the next run continues.
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
let configure = Configure(workPath: folder.appendingPathComponent(".work"))
let isWhole = try await withDownloader(configure, middlewares: register) { downloader in
    let model = try await downloader.barrel("model")
    for index in stride(from: 2, to: arguments.count - 1, by: 2) {
        var file = try Builder(arguments[index + 1])
        file.folder = folder
        file.options.checksum = try Checksum(.sha256, hex: arguments[index])
        try await model.add([file])
    }
    for await sum in model.progress {
        let silent = await model.memberInfos.filter { $0.state == .action && ($0.lastByteAt ?? .now) < .now - 2 }
        print(sum.count.received, "of", sum.count.expected ?? 0, "bytes,", silent.count, "files without data for 2 s")
    }
    for info in await model.memberInfos { print(info.state, info.error?.description ?? info.fileURL?.path ?? "") }
    return try await model.info.isComplete
}
exit(isWhole ? 0 : 1)
