import FKCore
import FKMiddleware
import Foundation

let urls = Array(CommandLine.arguments.dropFirst())
let folder = URL(fileURLWithPath: "files")
let configure = Configure(workPath: folder.appendingPathComponent(".work"))
try await withDownloader(configure) { downloader in
    do throws(DownloadError) {
        let task = try await downloader.add(urls[0], to: folder)
        for await progress in task.progress {
            print(progress.state, progress.count.received, "of", progress.count.expected ?? 0)
        }
        let file = try await task.file
        print("finished:", file.path)
    } catch {
        print("failed:", error.code, error.message)
    }
}
