import FKCore
import FKMiddleware
import Foundation

#if canImport(FoundationNetworking)
    import FoundationNetworking
#endif

struct SignRequests: RequestMiddleware {
    let secretHeaders = ["X-Signature"]

    func process(_ request: URLRequest, for task: TaskContext) async throws -> URLRequest {
        var request = request
        let path = request.url?.path ?? "/"
        let signature = Digester.hex(Digester.bytes(of: "secret \(path) \(task.attempt)", .sha256))
        request.setValue(signature, forHTTPHeaderField: "X-Signature")
        return request
    }
}

let urls = Array(CommandLine.arguments.dropFirst())
let folder = URL(fileURLWithPath: "files")
let configure = Configure(workPath: folder.appendingPathComponent(".work"))
let register = { (chains: MiddlewareChains) in _ = chains.register(request: SignRequests(), for: .barrel("list")) }
try await withDownloader(configure, middlewares: register) { downloader in
    let barrel = try await downloader.barrel("list")
    for case .failure(let error) in try await barrel.add(urls, to: folder) {
        print("refused:", error.message)
    }
    for await sum in barrel.progress {
        print(sum.states[.complete] ?? 0, "of", sum.total, "files,", sum.count.received, "bytes")
    }
    for info in await barrel.memberInfos {
        print(info.fileURL?.path ?? info.error?.message ?? "\(info.state)", info.url)
    }
}
