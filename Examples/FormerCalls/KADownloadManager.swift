import FKCompatibility
import Foundation

/// KADownloadManager: a waiting and a running list, first in first out, and three callbacks for each file.
func kaDownloadManager(_ urls: [String], _ folder: URL) async throws {
    var configure = Configure(workPath: folder.appendingPathComponent(".work"))
    configure.maxAction = 1
    configure.order = .fifo
    try await withDownloader(configure) { downloader in
        for url in urls {
            var builder = try Builder(url)
            builder.folder = folder
            let name = builder.url.split(separator: "/").last ?? ""
            try await downloader.messager.addCallbacks(
                builder.id, stateChanged: { print("state", name, $0.rawValue) },
                progress: { received, expected, share in print("progress", name, received, expected ?? -1, share ?? 0)
                },
                completion: { result in print("completion", name, (try? result.get().path) ?? "failed") }
            ).keep()
            try await builder.prepare(in: downloader)
        }
        print("running", try await downloader.messager.running().map { $0.fileName ?? "-" })
        print("waiting", try await downloader.messager.waiting().map { $0.fileName ?? "-" })
        await downloader.waitUntilDrained()
    }
}
