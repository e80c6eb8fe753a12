import FKCore
import Foundation

/// ZFRetryDownloader: a list of addresses, tried in order until one of them has sent the file, with each attempt told.
func zfRetryDownloader(_ urls: [String], _ folder: URL) async throws {
    try await withDownloader(Configure(workPath: folder.appendingPathComponent(".work"))) { downloader in
        var builder = try Builder(plan: urls)
        builder.folder = folder
        builder.options.existing = .skip
        let attempts = downloader.messager.attempts(builder.id)
        let reader = Task {
            for await attempt in attempts {
                switch attempt.phase {
                case .progressed(let count): print("progress", count.received, count.expected ?? -1)
                case .succeeded: print("success", attempt.number, attempt.url)
                case .failed(let error, _): print("failure", attempt.number, attempt.url, error.message)
                case .began, .stopped: break
                }
            }
        }
        let file = try? await downloader.download(builder)
        await reader.value
        print(file?.path ?? "every attempt has failed")
    }
}
