// One file, with one call.
//
//     OneFile URL [FOLDER]
//
// Run it again after an interruption: it continues. Exit status: 0 when the file is there.

import FKCore
import FKMiddleware
import Foundation

let arguments = CommandLine.arguments.dropFirst()
guard let url = arguments.first else {
    print("usage: OneFile URL [FOLDER]")
    exit(2)
}
let folder = URL(fileURLWithPath: arguments.dropFirst().first ?? ".")
do {
    let file = try await withDownloader(Configure(workPath: folder.appendingPathComponent(".work"))) { downloader in
        try await downloader.download(url, to: folder)
    }
    print("complete: \(file.path)")
} catch {
    print("failed: \(error)")
    exit(1)
}
