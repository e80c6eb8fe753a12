// The calls of five older libraries, in their own order: one file for each.
//
//     FormerCalls fk|zf|tt|ka|mc FOLDER URL...
//
// Exit status: 2 for other arguments.

import Foundation

let arguments = Array(CommandLine.arguments.dropFirst())
let libraries = [
    "fk": fkDownloader, "zf": zfRetryDownloader, "tt": ttDownloadManager, "ka": kaDownloadManager,
    "mc": mcDownloadManager,
]
guard arguments.count > 2, let library = libraries[arguments[0]] else {
    print("usage: FormerCalls fk|zf|tt|ka|mc FOLDER URL...")
    exit(2)
}
try await library(Array(arguments[2...]), URL(fileURLWithPath: arguments[1]))
