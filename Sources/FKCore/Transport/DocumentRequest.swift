import FKMiddleware
import Foundation

/// Fetches a small document into memory, such as a list of digests or a page of a hub. Transient failures are retried
/// as those of a task.
package struct DocumentRequest: Sendable {
    /// The URL, percent-encoded.
    package var url: String
    /// Header fields of the request. The default is none.
    package var headers: [HeaderField] = []
    /// The lower-case names of header fields that do not follow a redirect to another origin. The default is none.
    package var secretHeaders: Set<String> = []
    /// The options for the connection: proxy, TLS, time-outs and attempts.
    package var options: TaskOptions
    /// The maximum length in bytes. The default is 64 MiB.
    package var limit = 64 << 20
    /// Decides by the head whether the document is fetched. The default is always.
    package var isWanted: @Sendable (ResponseHead) -> Bool = { _ in true }

    /// Creates a request.
    package init(url: String, options: TaskOptions = TaskOptions()) {
        self.url = url
        self.options = options
    }

    /// A fetched document.
    package struct Answer: Sendable {
        /// The head of the response.
        package var head: ResponseHead
        /// The body; nil if it was not wanted.
        package var bytes: [UInt8]?
    }

    /// Sends the request, and waits between its attempts.
    ///
    /// - Throws: `DownloadError` of the last attempt; `.tooLarge` for a longer document; `.cancelled`.
    package func fetch(over transport: any Transport) async throws(DownloadError) -> Answer {
        var policy = RetryPolicy()
        if let most = options.maxAttempts { policy.maxAttempts = most }
        var attempt = 1
        while true {
            do throws(DownloadError) {
                return try await attemptOnce(transport)
            } catch {
                guard attempt < policy.maxAttempts, RetryRules.isRetryable(error), !Task.isCancelled else {
                    throw error
                }
                let delay =
                    RetryRules.asked(by: error, policy)
                    ?? RetryRules.backOff(attempt: attempt, policy: policy, random: Double.random(in: 0..<1))
                attempt += 1
                do { try await Task.sleep(for: .seconds(min(delay, 60))) } catch {
                    throw DownloadError(.cancelled, "The request was cancelled.")
                }
            }
        }
    }

    private func attemptOnce(_ transport: any Transport) async throws(DownloadError) -> Answer {
        guard let target = URL(string: url) else {
            throw DownloadError(.invalidURL, "This is no URL.", url: URLMasking.mask(url))
        }
        var request = URLRequest(url: target)
        for field in headers { request.add(field) }
        let sent = TransportRequest(
            urlRequest: request, secretHeaders: secretHeaders,
            options: options.transportOptions(over: TransportOptions()), prefersHTTP1: true)
        let result = await withCheckedContinuation { continuation in
            _ = transport.start(
                sent, handler: Reader(limit: limit, isWanted: isWanted) { continuation.resume(returning: $0) })
        }
        do { return try result.get() } catch {
            var error = error
            error.url = error.url ?? URLMasking.mask(url)
            throw error
        }
    }

    /// Collects the body of one response.
    private final class Reader: TransportHandler, @unchecked Sendable {
        // Sendable because the transport calls a handler from one thread at a time.
        private let limit: Int
        private let isWanted: @Sendable (ResponseHead) -> Bool
        private let onEnd: @Sendable (Result<Answer, DownloadError>) -> Void
        private var head: ResponseHead?
        private var bytes: [UInt8] = []
        private var refusal: DownloadError?
        private var isUnwanted = false

        init(
            limit: Int, isWanted: @escaping @Sendable (ResponseHead) -> Bool,
            onEnd: @escaping @Sendable (Result<Answer, DownloadError>) -> Void
        ) {
            self.limit = limit
            self.isWanted = isWanted
            self.onEnd = onEnd
        }

        func transport(didReceive head: ResponseHead) throws(DownloadError) {
            self.head = head
            guard head.status == 200 || head.status == 203 else {
                refusal = RetryRules.error(for: head, now: Date())
                return
            }
            guard isWanted(head) else {
                isUnwanted = true
                throw DownloadError(.cancelled, "The document was not needed.")
            }
            if let length = try? ContentLength.parse(head), length > Int64(limit) { throw tooLarge }
        }

        private var tooLarge: DownloadError {
            DownloadError(.tooLarge, "The document is longer than \(limit >> 20) MiB.")
        }

        func transport(didReceive bytes: UnsafeRawBufferPointer) -> BodyVerdict {
            if refusal != nil {
                self.bytes += bytes.prefix(512 - min(512, self.bytes.count))
                return self.bytes.count < 512 ? .consumed : .enough
            }
            guard self.bytes.count + bytes.count <= limit else { return .fail(tooLarge) }
            self.bytes += bytes
            return .consumed
        }

        func transportDidFinish(_ result: Result<TransportSummary, DownloadError>) {
            if isUnwanted, let head { return onEnd(.success(Answer(head: head, bytes: nil))) }
            if var refusal {
                refusal.underlying = ErrorPage.text(bytes)
                return onEnd(.failure(refusal))
            }
            switch result {
            case .success:
                guard let head else {
                    return onEnd(.failure(DownloadError(.protocolViolation, "The server sent no head.")))
                }
                onEnd(.success(Answer(head: head, bytes: bytes)))
            case .failure(let error): onEnd(.failure(error))
            }
        }
    }
}
