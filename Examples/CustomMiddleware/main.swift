// Your own middlewares in all three chains, and an included one.
//
//     CustomMiddleware [--work-path DIR] [--reject TEXT] FOLDER URL...
//
// Each request is signed, progress is logged, each finished file is verified and then moved to FOLDER. With --reject, a
// file that contains TEXT is refused: its task ends in error with that reason. With --work-path, a second run continues an
// interrupted one. Exit status: 0 when all files arrived.

import FKCore
import FKMiddleware
import Foundation

#if canImport(FoundationNetworking)
    import FoundationNetworking
#endif

/// Signs each request: runs again on every attempt, so the signature is always fresh. Its changes are never stored.
struct SignRequest: RequestMiddleware {
    let key: String
    let priority = 10

    func process(_ request: URLRequest, for task: TaskContext) async throws -> URLRequest {
        var request = request
        let path = request.url?.path ?? "/"
        let signature = Digester.hex(Digester.bytes(of: "\(key)\n\(path)\n\(task.attempt)", .sha256))
        request.setValue(signature, forHTTPHeaderField: "X-Signature")
        request.setValue("\(task.attempt)", forHTTPHeaderField: "X-Attempt")
        print("signed    \(path), attempt \(task.attempt)")
        return request
    }

    // It is not sent to another origin after a redirect.
    var secretHeaders: [String] { ["X-Signature"] }
}

/// Receives every change of state, and progress at the polled interval. It cannot change the download.
struct LogProgress: DownloadMiddleware {
    func download(_ task: TaskContext, didChangeTo state: DownloadState, error: DownloadError?) {
        print(
            "state     \(task.originalURL.lastPathComponent): \(state.rawValue)\(error.map { " (\($0.message))" } ?? "")"
        )
    }

    func download(_ task: TaskContext, didReceive count: ByteCount) {
        let percent = count.fraction.map { "\(Int($0 * 100)) %" } ?? "length unknown"
        print("progress  \(task.originalURL.lastPathComponent): \(count.received) bytes, \(percent)")
    }
}

/// Runs when the file is complete and has its name. An error fails the task, and the file is renamed.
struct VerifyContent: ResponseMiddleware {
    let forbidden: String?
    // Before MoveToFolderMiddleware, whose priority is 200.
    let priority = 50

    struct Forbidden: Error, CustomStringConvertible {
        let text: String
        var description: String { "it contains \"\(text)\"" }
    }

    func process(_ response: DownloadResponse) async throws -> DownloadResponse {
        // After a failure of the task itself there is no file.
        guard response.error == nil, let file = response.fileURL else { return response }
        if let forbidden, try Data(contentsOf: file, options: .alwaysMapped).range(of: Data(forbidden.utf8)) != nil {
            throw Forbidden(text: forbidden)
        }
        print("verified  \(file.lastPathComponent)")
        return response
    }
}

/// Downloads the URLs and returns how many of them failed.
func download(
    _ urls: [String], to folder: URL, rejecting forbidden: String?, in kept: URL?
) async throws -> Int {
    // A work path of its own, so that running the example twice fetches the files twice.
    let temporary = FileManager.default.temporaryDirectory.appendingPathComponent("fk-\(UUID().uuidString)")
    defer { try? FileManager.default.removeItem(at: temporary) }
    var configure = Configure(workPath: kept ?? temporary)
    configure.progressInterval = .milliseconds(200)
    let downloader = try Downloader(configure)

    downloader.middlewares.register(request: SignRequest(key: "secret"))
    downloader.middlewares.register(download: LogProgress())
    downloader.middlewares.register(response: VerifyContent(forbidden: forbidden))
    downloader.middlewares.register(response: MoveToFolderMiddleware(folder: folder))
    downloader.activateQueue()

    var failures = 0
    for url in urls {
        let id = try await downloader.add(url).id
        guard let info = await downloader.messager.finished(id), info.state == .complete else {
            let error = await downloader.messager.info(id)?.error
            print("failed    \(url): \(error?.code.rawValue ?? "unknown"): \(error?.message ?? "")")
            failures += 1
            continue
        }
        print("complete  \(url) -> \(info.fileURL?.path ?? "?")")
    }
    // Returns when every callback has run.
    await downloader.close()
    return failures
}

var arguments = Array(CommandLine.arguments.dropFirst())
var options: [String: String] = [:]
while let name = arguments.first, ["--reject", "--work-path"].contains(name), arguments.count > 1 {
    options[name] = arguments[1]
    arguments.removeFirst(2)
}
guard arguments.count >= 2 else {
    print("usage: CustomMiddleware [--work-path DIR] [--reject TEXT] FOLDER URL...")
    exit(2)
}
do {
    let folder = URL(fileURLWithPath: arguments[0], isDirectory: true)
    let workPath = options["--work-path"].map { URL(fileURLWithPath: $0, isDirectory: true) }
    let failures = try await download(
        Array(arguments.dropFirst()), to: folder, rejecting: options["--reject"], in: workPath)
    exit(failures == 0 ? 0 : 1)
} catch {
    print("failed    \(error)")
    exit(1)
}
