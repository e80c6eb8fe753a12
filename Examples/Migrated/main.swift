// The small download manager of the migration guide: several files at once, combined progress, a header, and downloads that
// continue after an interruption.
//
//     Migrated FOLDER URL...
//
// Exit status: 0 when all files are there.

import FKCore
import FKMiddleware
import Foundation

let arguments = CommandLine.arguments.dropFirst()
guard let folder = arguments.first.map({ URL(fileURLWithPath: $0) }), arguments.count > 1 else {
    print("usage: Migrated FOLDER URL...")
    exit(2)
}
let client = try HeadersMiddleware([HeaderField("X-Client", "migrated")])
var configure = Configure(workPath: folder.appendingPathComponent(".work"))
configure.maxAction = 4
let register = { (chains: MiddlewareChains) in _ = chains.register(request: client) }
let failures = try await withDownloader(configure, middlewares: register) { downloader in
    let barrel = try await downloader.barrel("all")
    for case .failure(let error) in try await barrel.add(Array(arguments.dropFirst()), to: folder) {
        print("refused:", error.message)
    }
    for await sum in barrel.progress {
        let (received, expected) = (sum.count.received, sum.count.expected ?? 0)
        print("\(received) of \(expected) bytes, \(sum.states[.complete] ?? 0) of \(sum.total) files")
    }
    let infos = await barrel.memberInfos
    for info in infos {
        let failure = info.error.map { "failed: \(info.url): \($0.message)" }
        print(failure ?? "\(info.state.rawValue): \(info.fileName ?? "")")
    }
    return infos.count { $0.state != .complete }
}
exit(failures == 0 ? 0 : 1)
