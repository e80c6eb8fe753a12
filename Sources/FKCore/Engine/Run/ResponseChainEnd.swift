import FKMiddleware
import Foundation

/// The result of a response chain.
struct ResponseChainEnd: Sendable {
    var response: DownloadResponse
    /// The file after the chain; nil after a failed download, which has no file.
    var received: ReceivedFile?
    /// The middleware that threw an error, and the error; nil if none did.
    var failure: (name: String, error: any Error)?
    /// The first middleware that asked for another attempt of a failed download; nil if none did.
    var retry: (name: String, request: RetryRequest)?

    /// Runs the chain. The first error ends it, except after a failed download, which all middlewares receive. A middleware
    /// that names no readable regular file as the finished one has failed: the file it received counts. So has one that sets an
    /// error, and one that names a file that was there before, while the received one is still there. One that has moved the file
    /// into a work path has failed as well, and the moved file counts.
    ///
    /// - Parameters:
    ///   - workPath: of the task; nil after a failed download.
    ///   - received: the file; nil after a failed download.
    static func run(
        _ chain: [any ResponseMiddleware], _ response: DownloadResponse, _ workPath: WorkPath? = nil,
        _ received: ReceivedFile? = nil
    ) async -> ResponseChainEnd {
        var response = response
        var received = received
        // A middleware cannot turn a failed download into a complete one, nor change its error.
        let failure = response.error
        var retry: (name: String, request: RetryRequest)?
        for middleware in chain {
            do {
                let began = KernelTime.now
                var answer = try await middleware.process(response)
                if failure == nil {
                    // A middleware that sets an error means the same as one that throws it.
                    if let error = answer.error { throw error }
                    guard let path = answer.fileURL?.path else {
                        throw DownloadError(
                            .middleware,
                            "The response middleware \"\(middleware.name)\" removed the finished file from its response: "
                                + "set fileURL to the file's place, or throw an error to refuse the file.")
                    }
                    if let fault = fault(of: path) {
                        throw DownloadError(
                            .middleware, "\(middleware.name) names \(path) as the finished file: \(fault).")
                    }
                }
                answer.error = failure
                if let path = answer.fileURL?.path {
                    try received?.adopt(path, leftBehind: answer.leftBehind, since: began, from: middleware.name)
                }
                let folder = response.fileURL?.path.folderPart
                response = answer
                guard let workPath, let path = answer.fileURL?.path, folder?.isExactly(path.folderPart) != true,
                    !workPath.isOwn(path, response.task.id)
                else { continue }
                do { try Folder.checkOutside(workPath, path.folderPart) } catch {
                    let error = DownloadError(
                        .middleware, "\(middleware.name) has moved the finished file to \(path): \(error.message)")
                    return .init(response: response, received: received, failure: (middleware.name, error))
                }
            } catch {
                if failure == nil {
                    return .init(response: response, received: received, failure: (middleware.name, error))
                }
                if let request = error as? RetryRequest, retry == nil { retry = (middleware.name, request) }
            }
        }
        return .init(response: response, received: received, retry: retry)
    }

    /// The reason why a path cannot be a finished file; nil if it can.
    private static func fault(of path: String) -> String? {
        var status = stat()
        guard stat(path, &status) == 0 else { return String(cString: strerror(errno)) }
        if status.st_mode & S_IFMT != S_IFREG { return "it is not a regular file" }
        return access(path, R_OK) == 0 ? nil : String(cString: strerror(errno))
    }

    /// Tells response middlewares that the deadline of a task has passed. Their errors are ignored.
    ///
    /// - Parameter head: the last response's; nil without one.
    static func tell(_ error: DownloadError, of entry: TaskEntry, head: ResponseHead?, _ book: TaskBook) {
        let chain = entry.middlewares(of: book.chains.response)
        guard !chain.isEmpty else { return }
        let response = DownloadResponse(
            task: entry.context, response: head?.httpURLResponse, error: error,
            destination: URL(fileURLWithPath: entry.record.destination(in: book.workPath)))
        Task { _ = await run(chain, response) }
    }

    /// The reason to reject the file; nil if there is none.
    var downloadError: DownloadError? {
        guard let (name, error) = failure else { return nil }
        if let retry = error as? RetryRequest {
            return DownloadError(
                .middleware, "\(name) asks for the file to be fetched again: \(retry.reason)", isRetryable: true,
                retryAfter: retry.delay)
        }
        return error as? DownloadError ?? DownloadError(.rejected, "\(name) rejected the file: \(error)")
    }
}
