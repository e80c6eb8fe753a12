// A list of photos, four at a time. Failures are reported, and the others continue.
//
//     PhotoList FOLDER URL...

import FKCore
import FKMiddleware
import Foundation

let urls = Array(CommandLine.arguments.dropFirst(2))
let folder = URL(fileURLWithPath: CommandLine.arguments.count > 1 ? CommandLine.arguments[1] : ".")
var configure = Configure(workPath: folder.appendingPathComponent(".work"))
configure.maxAction = 4
let failures = try await withDownloader(configure) { downloader in
    let photos = try await downloader.barrel("photos")
    var failures = 0
    for case .failure(let error) in try await photos.add(urls, to: folder) {
        print("refused: \(error.message)")
        failures += 1
    }
    for await photo in photos.ended {
        do throws(DownloadError) {
            print("complete: \(try await photo.file.lastPathComponent)")
        } catch {
            print("failed: \(error)")
            failures += 1
        }
    }
    return failures
}
exit(failures == 0 ? 0 : 1)
