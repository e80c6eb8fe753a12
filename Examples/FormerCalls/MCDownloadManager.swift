import FKCore
import FKMiddleware
import Foundation

/// MCDownloadManager: Foundation's progress, success or failure with the response, a receipt of each URL, digests as names.
func mcDownloadManager(_ urls: [String], _ folder: URL) async throws {
    var configure = Configure(workPath: folder.appendingPathComponent(".work"))
    configure.maxAction = 4
    configure.order = .lifo
    try await withDownloader(configure) { downloader in
        for url in urls {
            var builder = try Builder(url)
            builder.folder = folder
            builder.useURLDigestAsFileName()
            let task = try await downloader.add(builder)
            let progress = try await downloader.messager.progress(task.id)
            do throws(DownloadError) {
                let file = try await task.file
                print("success", file.lastPathComponent, await downloader.messager.response(task.id)?.status ?? 0)
            } catch {
                print("failure", error.message)
            }
            let receipt = await downloader.messager.record(task.id)
            print(
                "receipt", receipt?.info.state.rawValue ?? "-", receipt?.info.count.received ?? 0,
                progress.totalUnitCount)
        }
    }
}
