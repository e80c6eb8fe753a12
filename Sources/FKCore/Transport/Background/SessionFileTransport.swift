import FKMiddleware
import Foundation

/// Fetches pieces by download tasks of a URLSession. With `URLSessionConfiguration.background` they survive the process.
///
/// Nobody has run it on Apple's systems. On Linux, a test runs it over FoundationNetworking with a foreground configuration.
///
/// - A piece's key is the task's `taskDescription`, because the process that receives the file may be another one.
/// - The system follows redirects by itself. It drops `Authorization`; other secret fields are refused.
/// - A process has one session for an identifier, as URLSession demands: another downloader takes it over.
package final class SessionFileTransport: NSObject, FileTransport, URLSessionDownloadDelegate, @unchecked Sendable {
    // Sendable because the lock protects all that changes.
    private struct State {
        var session: URLSession?
        var tasks: [PieceKey: URLSessionDownloadTask] = [:]
        /// The identifiers of tasks that we have ended: their errors are not reported.
        var cancelled: Set<Int> = []
        var report: (@Sendable (FileTransportEvent) -> Void)?
        /// Events between two downloaders.
        var missed: [FileTransportEvent] = []
    }

    private let state = Locked(State())
    private let identifier: String
    private let configuration: URLSessionConfiguration

    /// Creates a transport.
    package init(identifier: String, _ configuration: URLSessionConfiguration) {
        self.identifier = identifier
        self.configuration = configuration
    }

    #if canImport(Darwin)
        private static let transports = Locked<[String: SessionFileTransport]>([:])

        /// The transport of this process for a session.
        package static func shared(_ session: BackgroundSession, _ networks: Networks) -> SessionFileTransport {
            transports.withLock { transports in
                if let transport = transports[session.identifier] { return transport }
                let configuration = URLSessionConfiguration.background(withIdentifier: session.identifier)
                configuration.isDiscretionary = session.isDiscretionary
                configuration.sessionSendsLaunchEvents = true
                configuration.sharedContainerIdentifier = session.sharedContainer
                configuration.allowsCellularAccess = networks.allowsCellular
                configuration.allowsConstrainedNetworkAccess = networks.allowsConstrained
                configuration.allowsExpensiveNetworkAccess = networks.allowsExpensive
                configuration.requestCachePolicy = .reloadIgnoringLocalCacheData
                configuration.urlCache = nil
                configuration.httpCookieStorage = nil
                configuration.httpShouldSetCookies = false
                let transport = SessionFileTransport(identifier: session.identifier, configuration)
                transports[session.identifier] = transport
                return transport
            }
        }
    #endif

    // MARK: FileTransport

    package func refusal(of request: TransportRequest) -> DownloadError? {
        if let refusal = URLSessionOptions.refusal(of: request.options, url: request.form.url) { return refusal }
        let names = (request.urlRequest.allHTTPHeaderFields ?? [:]).keys.filter(HeaderField.isSecret)
        let secret = request.secretHeaders.union(names.map { $0.lowercased() }).subtracting(Self.dropped)
        guard secret.isEmpty else {
            return DownloadError(
                .invalidArgument, "Redirects could carry secret header fields to another server: \(secret.sorted()).")
        }
        do throws(DownloadError) {
            let outgoing = try OutgoingRequest(request)
            return outgoing.method == "GET" && outgoing.urlRequest != nil ? nil : Self.unusable
        } catch {
            return error
        }
    }

    /// Fields that the system does not send to another server.
    private static let dropped: Set<String> = ["authorization", "proxy-authorization", "cookie"]
    private static let unusable = DownloadError(
        .invalidArgument, "Only GET requests can be performed in the background.")

    package func adopt(_ report: @escaping @Sendable (FileTransportEvent) -> Void) {
        let (session, missed) = state.withLock { state in
            if state.session == nil {
                state.session = URLSession(configuration: configuration, delegate: self, delegateQueue: nil)
            }
            state.report = report
            defer { state.missed = [] }
            return (state.session, state.missed)
        }
        session?.getAllTasks { [self] tasks in
            for task in tasks { if let key = key(of: task) { record(task, key) } }
            report(.adopted(state.withLock { Set($0.tasks.keys) }))
            for event in missed {
                report(event)
                if case .finished(_, _, let file) = event { try? FileManager.default.removeItem(atPath: file) }
            }
        }
    }

    package func start(_ request: TransportRequest, piece: PieceKey) {
        // `refusal` was asked before.
        guard let urlRequest = try? OutgoingRequest(request).urlRequest,
            let task = state.withLock({ $0.session })?.downloadTask(with: urlRequest)
        else { return }
        task.taskDescription = piece.description
        record(task, piece)
        task.resume()
    }

    private func record(_ task: URLSessionTask, _ key: PieceKey) {
        state.withLock { $0.tasks[key] = task as? URLSessionDownloadTask }
    }

    package func cancel(_ pieces: Set<PieceKey>) {
        let tasks = state.withLock { state in
            let tasks = pieces.compactMap { state.tasks.removeValue(forKey: $0) }
            state.cancelled.formUnion(tasks.map(\.taskIdentifier))
            return tasks
        }
        tasks.forEach { $0.cancel() }
    }

    package func leave() { state.withLock { $0.report = nil } }

    // MARK: The delegate

    private func key(of task: URLSessionTask) -> PieceKey? { task.taskDescription.flatMap(PieceKey.init) }

    private func report(_ event: FileTransportEvent) {
        let report = state.withLock { state in
            if state.report == nil { state.missed.append(event) }
            return state.report
        }
        report?(event)
    }

    /// A task has ended. Returns true if it was ended by us.
    private func ended(_ task: URLSessionTask, _ key: PieceKey) -> Bool {
        state.withLock { state in
            if state.tasks[key] === task { state.tasks[key] = nil }
            return state.cancelled.remove(task.taskIdentifier) != nil
        }
    }

    package func urlSession(
        _ session: URLSession, downloadTask: URLSessionDownloadTask, didFinishDownloadingTo location: URL
    ) {
        guard let key = key(of: downloadTask), let response = downloadTask.response as? HTTPURLResponse else { return }
        if ended(downloadTask, key) { return }
        do throws(DownloadError) {
            let head = try head(of: response, for: downloadTask)
            guard state.withLock({ $0.report }) == nil else { return report(.finished(key, head, file: location.path)) }
            // The file disappears with this call, and nobody is there to take it.
            let kept = FileManager.default.temporaryDirectory.appendingPathComponent("fk-\(UUID().uuidString)")
            if (try? FileManager.default.moveItem(at: location, to: kept)) != nil {
                report(.finished(key, head, file: kept.path))
            }
        } catch {
            report(.failed(key, error))
        }
    }

    /// - Throws: `.redirect` for one that is not allowed; `.encodedBody` for a file that the system has decoded.
    private func head(of response: HTTPURLResponse, for task: URLSessionTask) throws(DownloadError) -> ResponseHead {
        let first = task.originalRequest?.url?.absoluteString ?? ""
        let url = URLParts(response.url?.absoluteString ?? first).requestURL
        let isRedirected = !url.isEmpty && url != URLParts(first).requestURL
        if isRedirected {
            var rules = RedirectRules(url: first, method: "GET", options: TransportOptions())
            _ = try rules.follow(status: 302, to: url)
        }
        let head = ResponseHead(response, url: url, redirects: isRedirected ? 1 : 0)
        guard !head.carriesFile || head.contentCoding == nil else {
            throw DownloadError(
                .encodedBody, "The server sends the file with a content coding, which the system has decoded.", url: url
            )
        }
        return head
    }

    package func urlSession(_ session: URLSession, task: URLSessionTask, didCompleteWithError error: (any Error)?) {
        guard let error = error as NSError?, let key = key(of: task) else { return }
        if ended(task, key) { return }
        let url = (task.originalRequest?.url?.absoluteString ?? "").masked
        // Ended by the user, who closed the application, or by the system.
        guard error.code != NSURLErrorCancelled else {
            let message = "The system has ended the download."
            return report(.failed(key, DownloadError(.connectionLost, message, url: url, isRetryable: true)))
        }
        report(.failed(key, URLSessionFailure(error, url: url, hasHead: task.response != nil).error))
    }

    /// The system has delivered all events for which it woke the application.
    package func urlSessionDidFinishEvents(forBackgroundURLSession session: URLSession) {
        report(.allDelivered(identifier: identifier))
    }
}
