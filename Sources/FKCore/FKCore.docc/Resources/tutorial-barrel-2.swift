import FKCore
import Foundation

let urls = Array(CommandLine.arguments.dropFirst())
let folder = URL(fileURLWithPath: "files")
let configure = Configure(workPath: folder.appendingPathComponent(".work"))
try await withDownloader(configure) { downloader in
    let barrel = try await downloader.barrel("list")
    for case .failure(let error) in try await barrel.add(urls, to: folder) {
        print("refused:", error.message)
    }
    for await sum in barrel.progress {
        print(sum.states[.complete] ?? 0, "of", sum.total, "files,", sum.count.received, "bytes")
    }
}
