import FKCore
import FKMiddleware
import Foundation

let urls = Array(CommandLine.arguments.dropFirst())
let folder = URL(fileURLWithPath: "files")
let configure = Configure(workPath: folder.appendingPathComponent(".work"))
try await withDownloader(configure) { downloader in
    do throws(DownloadError) {
        let file = try await downloader.download(urls[0], to: folder)
        print("finished:", file.path)
    } catch {
        print("failed:", error.code, error.message)
    }
}
