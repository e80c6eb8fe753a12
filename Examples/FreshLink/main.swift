// Links that expire: a request middleware asks a service for a fresh link before every attempt.
//
//     FreshLink SERVICE FOLDER NAME...
//
// The service answers `GET SERVICE/link/NAME` with the link of the file, as text. It wants the token of LINK_TOKEN, which
// the servers of the links never see. A link may be good for seconds, or for one request: the next attempt has another
// one and continues with the bytes that are there. Exit status: 0 when all files arrived.

import FKCore
import FKMiddleware
import Foundation

#if canImport(FoundationNetworking)
    import FoundationNetworking
#endif

/// Replaces the URL of every request by a fresh link. The task keeps its own URL, so its bytes and its record stay, whatever
/// the links are. The link is stored nowhere.
struct ResolveLink: RequestMiddleware {
    let service: URL
    let token: String

    struct Refused: Error, CustomStringConvertible {
        let description: String
    }

    func process(_ request: URLRequest, for task: TaskContext) async throws -> URLRequest {
        var question = URLRequest(url: service.appendingPathComponent("link/\(task.originalURL.lastPathComponent)"))
        question.setValue("Bearer \(token)", forHTTPHeaderField: "Authorization")
        let (body, response) = try await URLSession.shared.data(for: question)
        guard (response as? HTTPURLResponse)?.statusCode == 200,
            let link = URL(
                string: String(decoding: body, as: UTF8.self).trimmingCharacters(in: .whitespacesAndNewlines))
        else { throw Refused(description: "the service has no link for \(task.originalURL.lastPathComponent)") }
        print("link     \(task.originalURL.lastPathComponent), attempt \(task.attempt)")
        var request = request
        request.url = link
        return request
    }
}

let arguments = Array(CommandLine.arguments.dropFirst())
guard arguments.count >= 3, let service = URL(string: arguments[0]) else {
    print("usage: FreshLink SERVICE FOLDER NAME...")
    exit(2)
}
let folder = URL(fileURLWithPath: arguments[1])
let resolve = ResolveLink(service: service, token: ProcessInfo.processInfo.environment["LINK_TOKEN"] ?? "")
var configure = Configure(workPath: folder.appendingPathComponent(".work"))
// Several requests for one file would need several links.
configure.connections = .fixed(1)
configure.retry.baseDelay = .milliseconds(100)
do {
    let failures = try await withDownloader(configure, middlewares: { $0.register(request: resolve) }) { downloader in
        let barrel = try await downloader.barrel("links")
        let urls = arguments.dropFirst(2).map { service.appendingPathComponent($0).absoluteString }
        for result in try await barrel.add(urls, to: folder) { _ = try result.get() }
        var failures = 0
        for await task in barrel.ended {
            do throws(DownloadError) {
                print("complete \(try await task.file.lastPathComponent)")
            } catch {
                print("failed   \(error)")
                failures += 1
            }
        }
        return failures
    }
    exit(failures == 0 ? 0 : 1)
} catch {
    print("failed   \(error)")
    exit(1)
}
