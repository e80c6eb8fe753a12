import FKMiddleware
import Foundation

/// A transport that knows the policies of hosts.
package protocol HostAwareTransport: Transport {
    /// The address that is asked in place of a URL.
    func mirrored(_ url: String) -> String
    /// True if the policy of the URL's host retries the status.
    func retries(_ status: Int, of url: String) -> Bool
    /// The host at which redirects of the URL's host may authenticate.
    func loginHost(of url: String) -> String?
    /// Where the sessions of login hosts are kept.
    var sessionPath: String { get }
    /// A document could not be fetched, and is asked for again.
    func waits(after error: DownloadError, seconds: Double)
}

extension HostAwareTransport {
    /// Lets redirects authenticate at the login host of these options, or at that of the policy of the URL's host.
    package func addLogin(to options: inout TransportOptions, of url: String) {
        guard let host = options.loginHost ?? loginHost(of: url) else { return }
        (options.loginHost, options.sessionPath) = (host, sessionPath)
    }
}

/// Fetches a small document into memory, such as a list of digests or a page of a hub. Transient failures are retried
/// as those of a task.
package struct DocumentRequest: Sendable {
    /// The URL, percent-encoded.
    package var url: String
    /// The method. The default is GET. A request is repeated after a transient failure.
    package var method = "GET"
    /// The body; nil, the default, for none.
    package var body: Data?
    /// The status codes that are an answer and no error. The default is 200 and 203. The body of another one than 200, 203 and 207 is
    /// not fetched. A transient failure with `Retry-After` is no answer.
    package var statuses: Set<Int> = [200, 203]
    /// True also fetches the bodies of other accepted status codes, which explain the status: at most 64 KiB. The default is false.
    package var readsErrors = false
    /// Header fields of the request. The default is none.
    package var headers: [HeaderField] = []
    /// The lower-case names of header fields that do not follow a redirect to another origin. The default is none.
    package var secretHeaders: Set<String> = []
    /// The options for the connection: proxy, TLS, time-outs and attempts. Their header fields are not sent.
    package var options: TaskOptions
    /// The origin that the secrets of `options` were given for: the login of `~/.netrc`, the cookies and the signer. They are used if
    /// it is that of `url`. nil, the default, uses none.
    package var origin: URLOrigin?
    /// The credentials of the signer; nil, the default, for those of `AWSCredentials.usual()`.
    package var keys: AWSCredentials?
    /// The maximum length in bytes. The default is 64 MiB.
    package var limit = 64 << 20
    /// Whether a redirect from a public address to a loopback or private one is followed. The default is true.
    package var allowsPrivateRedirect = true
    /// Decides by the head whether the document is fetched. The default is always.
    package var isWanted: @Sendable (ResponseHead) -> Bool = { _ in true }

    package init(url: String, options: TaskOptions = TaskOptions()) {
        self.url = url
        self.options = options
    }

    /// A fetched document.
    package struct Answer: Sendable {
        package var head: ResponseHead
        /// The body; nil if it was not wanted.
        package var bytes: [UInt8]?
    }

    /// Sends the request, and waits between its attempts as a task does.
    ///
    /// - Throws: `DownloadError` of the last attempt; `.tooLarge` for a longer document; `.deadlineExceeded` at `options.deadline` or after
    ///   `options.runSeconds`; `.cancelled`.
    package func fetch(over transport: any Transport) async throws(DownloadError) -> Answer {
        var policy = RetryPolicy()
        if let most = options.maxAttempts { policy.maxAttempts = most }
        let aware = transport as? any HostAwareTransport
        let address = aware?.mirrored(url) ?? url
        let deadline = options.deadline ?? options.runSeconds.map { Date() + $0 }
        var attempt = 1
        while true {
            do throws(DownloadError) {
                return try await attemptOnce(transport, address)
            } catch {
                let isByPolicy = error.status.map { aware?.retries($0, of: url) ?? false } ?? false
                guard attempt < policy.maxAttempts, isByPolicy || RetryRules.isRetryable(error), !Task.isCancelled
                else {
                    throw error
                }
                let delay =
                    RetryRules.asked(by: error, policy)
                    ?? RetryRules.backOff(attempt: attempt, policy: policy, random: Double.random(in: 0..<1))
                attempt += 1
                if let deadline, Date() + delay > deadline { throw late(because: error) }
                aware?.waits(after: error, seconds: delay)
                do { try await Task.sleep(for: .seconds(delay)) } catch {
                    throw DownloadError(.cancelled, "The request was cancelled.")
                }
            }
        }
    }

    private func late(because error: DownloadError?) -> DownloadError {
        DownloadError(
            .deadlineExceeded,
            "The list or document was not there at its deadline" + (error.map { ": \($0.message)" } ?? "."),
            url: error?.url ?? url.masked, remedy: .extendDeadline)
    }

    /// - Parameter address: that of the host's mirror, or `url`.
    private func attemptOnce(_ transport: any Transport, _ address: String) async throws(DownloadError) -> Answer {
        guard let target = URL(string: address) else {
            throw DownloadError(.invalidURL, "This is no URL.", url: url.masked)
        }
        var request = URLRequest(url: target)
        request.httpMethod = method
        request.httpBody = body
        let isOwn = URLOrigin(address) == URLOrigin(url)
        for field in headers
        where isOwn || !HeaderField.isSecret(field.name) && !secretHeaders.contains(field.name.lowercased()) {
            request.add(field)
        }
        var transportOptions = options.transportOptions(over: TransportOptions())
        if let aware = transport as? any HostAwareTransport, origin != nil {
            aware.addLogin(to: &transportOptions, of: url)
        }
        if !allowsPrivateRedirect { transportOptions.allowsPrivateRedirect = false }
        let sent = try TransportRequest(
            .full(request), secretHeaders: secretHeaders, signer: options.awsSignature, keys: keys, of: origin,
            transportOptions,
            at: Date(), prefersHTTP1: true)
        let echo = EchoMasking(sent)
        let timer = Locked<Task<Void, Never>?>(nil)
        let result = await withCheckedContinuation { continuation in
            let operation = transport.start(
                sent,
                handler: Reader(limit: limit, statuses, readsErrors: readsErrors, isWanted: isWanted, echo) {
                    continuation.resume(returning: $0)
                })
            guard let deadline = options.deadline else { return }
            let end = Task {
                do { try await Task.sleep(for: .seconds(max(0, deadline.timeIntervalSinceNow))) } catch { return }
                operation.cancel()
            }
            timer.withLock { $0 = end }
        }
        timer.withLock { $0?.cancel() }
        if case .failure = result, let deadline = options.deadline, Date() >= deadline { throw late(because: nil) }
        do {
            var answer = try result.get()
            // The relative addresses of the document are those of the host.
            if address != url, answer.head.redirects == 0 { answer.head.url = url }
            return answer
        } catch {
            var error = echo.mask(error)
            if error.status == 401, error.code == .httpStatus, error.url == nil,
                request.value(forHTTPHeaderField: "Authorization") != nil
            {
                error.message = RetryRules.refusingLogin(error.message)
            }
            error.url = error.url ?? address.masked
            throw error
        }
    }

    /// Collects the body of one response.
    private final class Reader: TransportHandler, @unchecked Sendable {
        // Sendable because the transport calls a handler from one thread at a time.
        private let limit: Int
        private let statuses: Set<Int>
        private let readsErrors: Bool
        private let isWanted: @Sendable (ResponseHead) -> Bool
        private let echo: EchoMasking
        private let onEnd: @Sendable (Result<Answer, DownloadError>) -> Void
        private var head: ResponseHead?
        private var bytes: [UInt8] = []
        private var refusal: DownloadError?
        private var isUnwanted = false

        init(
            limit: Int, _ statuses: Set<Int>, readsErrors: Bool, isWanted: @escaping @Sendable (ResponseHead) -> Bool,
            _ echo: EchoMasking,
            onEnd: @escaping @Sendable (Result<Answer, DownloadError>) -> Void
        ) {
            self.limit = limit
            self.statuses = statuses
            self.readsErrors = readsErrors
            self.isWanted = isWanted
            self.echo = echo
            self.onEnd = onEnd
        }

        func transport(didReceive head: ResponseHead) throws(DownloadError) {
            self.head = head
            let error = RetryRules.error(for: head, now: Date())
            guard statuses.contains(head.status), !error.isRetryable || head.first("Retry-After") == nil else {
                refusal = error
                return
            }
            // The explanation may be cut off.
            if !head.carriesDocument, readsErrors { return }
            guard head.carriesDocument, isWanted(head) else {
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
            if let head, !head.carriesDocument {
                self.bytes += bytes.prefix((64 << 10) - min(64 << 10, self.bytes.count))
                return self.bytes.count < 64 << 10 ? .consumed : .enough
            }
            guard self.bytes.count + bytes.count <= limit else { return .fail(tooLarge) }
            self.bytes += bytes
            return .consumed
        }

        func transportDidFinish(_ result: Result<TransportSummary, DownloadError>) {
            if var refusal {
                refusal.underlying = ErrorPage.text(bytes).map { echo.mask($0, url: head?.url) }
                return onEnd(.failure(refusal))
            }
            if let head, isUnwanted || !head.carriesDocument && statuses.contains(head.status) {
                return onEnd(.success(Answer(head: head, bytes: isUnwanted ? nil : bytes)))
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
