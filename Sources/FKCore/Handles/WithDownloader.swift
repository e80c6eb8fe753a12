import FKEngine
import FKMiddleware

/// Creates a downloader, starts its queue, and closes it when `body` has returned, thrown or been cancelled.
///
/// ```swift
/// let file = try await withDownloader { downloader in
///     try await downloader.download("https://example.com/a.zip", to: folder)
/// }
/// ```
///
/// Closing stops the tasks that still run and keeps their bytes. It also completes if the Swift task is cancelled.
///
/// - Parameters:
///   - configure: the settings; the default is `Configure()`.
///   - role: what the downloader does on the work path; the default owns it.
///   - transport: what transfers the bytes; nil, the default, uses `configure.transportKind`.
///   - middlewares: registers middlewares before the queue starts, so that tasks of an earlier run meet them too.
///   - body: uses the downloader, which is closed afterwards.
/// - Returns: the result of `body`.
/// - Throws: the errors of `Downloader.init`, and those of `middlewares` and `body`.
@discardableResult
public func withDownloader<Value>(
    _ configure: Configure = Configure(), role: DownloaderRole = .owner, transport: (any Transport)? = nil,
    middlewares: (MiddlewareChains) throws -> Void = { _ in },
    isolation: isolated (any Actor)? = #isolation,
    _ body: (Downloader) async throws -> Value
) async throws -> Value {
    let downloader = try Downloader(configure, role: role, transport: transport)
    do {
        try middlewares(downloader.middlewares)
        downloader.activateQueue()
        let value = try await body(downloader)
        await downloader.close()
        return value
    } catch {
        await downloader.close()
        throw error
    }
}
