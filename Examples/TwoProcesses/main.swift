// Two processes on one work path. Start it twice, then kill the one that downloads: the other continues.
//
//     TwoProcesses FOLDER URL...
//
// Exit status: 0 when all files are there, 1 when one has failed.

import FKCore
import FKMiddleware
import Foundation

let arguments = CommandLine.arguments.dropFirst()
guard let folder = arguments.first.map({ URL(fileURLWithPath: $0) }), arguments.count > 1 else {
    print("usage: TwoProcesses FOLDER URL...")
    exit(2)
}
// Print lines at once, also into a file.
@Sendable func say(_ line: String) { FileHandle.standardOutput.write(Data("\(line)\n".utf8)) }

let configure = Configure(workPath: folder.appendingPathComponent(".work"))
do {
    let isComplete = try await withDownloader(configure, role: .either) { downloader in
        // Prints the owner, now and after each change.
        let owners = Task {
            for await owner in downloader.owners {
                switch owner {
                case .thisDownloader: say("owner     this process")
                case .process(let pid, _): say("owner     process \(pid)")
                case .nobody: say("owner     nobody")
                }
            }
        }
        defer { owners.cancel() }
        let builders = try arguments.dropFirst().map { url in
            var builder = try Builder(url)
            builder.folder = folder
            return builder
        }
        let barrel = try await downloader.barrel("files")
        for result in try await barrel.add(builders) { _ = try result.get() }
        for await task in barrel.ended {
            guard let info = await task.info else { continue }
            say("\(info.state)  \(info.fileName ?? info.url)")
        }
        return try await barrel.info.isComplete
    }
    exit(isComplete ? 0 : 1)
} catch {
    print("failed: \(error)")
    exit(1)
}
