// The files of a list: URLs, a Metalink, a checksum list, a bag's manifest, a lock file or JSON. The form is recognised.
//
//     FetchList LIST FOLDER [BASE-URL]
//
// BASE-URL says where the names of a checksum list are. Sizes and digests of the list are checked before a file gets its
// name. FOLDER/files.lock then has the digest of every file. Exit status: 0 when every file of the list is there.

import FKCore
import FKManifests
import FKMiddleware
import Foundation

let arguments = Array(CommandLine.arguments.dropFirst())
guard arguments.count >= 2 else {
    print("usage: FetchList LIST FOLDER [BASE-URL]")
    exit(2)
}
let folder = URL(fileURLWithPath: arguments[1])
var reading = Manifest.Reading()
reading.baseURL = arguments.count > 2 ? arguments[2] : nil
var failures = 0
do {
    let bytes = try Data(contentsOf: URL(fileURLWithPath: arguments[0]))
    let manifest = try Manifest(parsing: Array(bytes), fileName: arguments[0], reading)
    for fault in manifest.faults { print("left out: \(fault)") }
    failures = manifest.faultCount
    let builders = try manifest.entries.map { try Builder($0, in: folder, takesOrders: true) }
    failures += try await withDownloader(Configure(workPath: folder.appendingPathComponent(".work"))) { downloader in
        let list = try await downloader.barrel("list")
        var failures = 0
        for case .failure(let error) in try await list.add(builders) {
            print("refused: \(error.message)")
            failures += 1
        }
        for await task in list.ended {
            do throws(DownloadError) {
                print("complete: \(try await task.file.lastPathComponent)")
            } catch {
                print("failed: \(error)")
                failures += 1
            }
        }
        // The files that are there, with their digests: import the lock elsewhere, and get the same files.
        if failures == 0 {
            let lock = folder.appendingPathComponent("files.lock")
            for fault in try await list.export(as: .lock, to: lock) { print("not in the lock: \(fault)") }
        }
        return failures
    }
} catch {
    print("failed: \(error)")
    exit(1)
}
exit(failures == 0 ? 0 : 1)
