// A small download manager, as the migration guide builds it: several files at once with overall progress, a header,
// bytes that outlive the program.
//
//     Migrated FOLDER URL...
//
// Run it again after an interruption: it goes on where it was. Exit status: 0 when all files are there.

import FKCore
import FKMiddleware
import Foundation

let arguments = CommandLine.arguments.dropFirst()
guard let folder = arguments.first, arguments.count > 1 else {
    print("usage: Migrated FOLDER URL...")
    exit(2)
}

var configure = Configure(workPath: URL(fileURLWithPath: folder).appendingPathComponent(".work"))
configure.maxAction = 4
configure.distributeSpeed = 1
let downloader = try Downloader(configure)
downloader.middlewares.register(request: try HeadersMiddleware(["X-Client": "migrated"]))
downloader.activateQueue()

let builders = try arguments.dropFirst().map { text in
    var builder = try Builder(text)
    builder.directory = folder
    return builder
}
let tasks = try await Builder.prepare(builders, barrel: "all", in: downloader).map { try $0.get() }
for await info in downloader.messager.barrelInfos("all") {
    print(
        "\(info.count.received) of \(info.count.expected ?? 0) bytes, \(info.states[.complete] ?? 0) of \(info.total) files"
    )
}

var failures = 0
for id in tasks {
    guard let receipt = await downloader.messager.receipt(.id(id)) else { continue }
    if let error = receipt.error {
        failures += 1
        print("failed: \(receipt.url): \(error.message)")
    } else {
        print("\(receipt.state.rawValue): \(receipt.name)")
    }
}
await downloader.close()
exit(failures == 0 ? 0 : 1)
