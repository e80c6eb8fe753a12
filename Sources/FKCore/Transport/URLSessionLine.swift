import Dispatch
import FKMiddleware
import Foundation

#if canImport(FoundationNetworking)
    import FoundationNetworking
#endif

/// One session, for one transfer after another, with the means to hold it back.
///
/// What stops the flow differs:
/// - On Linux a task's `suspend()` closes its connection, and a busy delegate only lets its queue grow without bound:
///   libcurl goes on reading on another queue (swift-corelibs-foundation #3204). So the delegate's calls are made at
///   once on the queue that reads, and this queue is suspended to hold a transfer back: nothing is read then, and TCP
///   stops the server. The queue is a private property of URLSession's and is found by reflection.
/// - On Apple's systems a task's `suspend()` does it.
final class URLSessionLine: NSObject, URLSessionDataDelegate, @unchecked Sendable {
    // Sendable because `session` and `queue` are set once in `init`, and `gate` and `transfer` are behind their locks.
    let origin: URLOrigin
    private let commands: DispatchQueue
    private var session: URLSession!
    /// The callbacks come on it, and only on it.
    private var queue: DispatchQueue!
    private let gate = Locked(Gate())
    private let transfer = Locked<URLSessionTransfer?>(nil)

    private struct Gate {
        var isHeld = false
        /// Jobs that are on their way: what they may open must not be closed before.
        var jobs = 0
        var task: URLSessionTask?
    }

    /// Nil when this Foundation's URLSession has no queue that can be suspended.
    ///
    /// - Parameter commands: where tasks are made and cancelled.
    init?(origin: URLOrigin, networks: URLSessionTransport.Networks, commands: DispatchQueue) {
        self.origin = origin
        self.commands = commands
        super.init()
        let configuration = Self.configuration(networks)
        #if canImport(FoundationNetworking)
            session = URLSession(configuration: configuration, delegate: self, delegateQueue: InlineQueue())
            queue = Mirror(reflecting: session!).children.first { $0.label == "workQueue" }?.value as? DispatchQueue
            if queue == nil {
                session.invalidateAndCancel()
                return nil
            }
        #else
            queue = DispatchQueue(label: "fk.urlsession.callbacks")
            let operations = OperationQueue()
            operations.underlyingQueue = queue
            operations.maxConcurrentOperationCount = 1
            session = URLSession(configuration: configuration, delegate: self, delegateQueue: operations)
        #endif
    }

    /// No cache, no cookies, no saved passwords, and no time-outs: those are the transfer's.
    private static func configuration(_ networks: URLSessionTransport.Networks) -> URLSessionConfiguration {
        let configuration = URLSessionConfiguration.ephemeral
        configuration.urlCache = nil
        configuration.requestCachePolicy = .reloadIgnoringLocalCacheData
        configuration.httpCookieStorage = nil
        configuration.httpCookieAcceptPolicy = .never
        configuration.httpShouldSetCookies = false
        configuration.urlCredentialStorage = nil
        configuration.timeoutIntervalForRequest = endless
        configuration.timeoutIntervalForResource = endless
        #if canImport(Darwin)
            configuration.allowsCellularAccess = networks.allowsCellular
            configuration.allowsConstrainedNetworkAccess = networks.allowsConstrained
            configuration.allowsExpensiveNetworkAccess = networks.allowsExpensive
        #endif
        return configuration
    }

    /// Seconds: ten years.
    private static let endless = 315_360_000.0

    // MARK: The hub's queue

    /// Begins a request; the transfer must not have another one under way here.
    func begin(_ request: URLRequest, for transfer: URLSessionTransfer) {
        var request = request
        request.timeoutInterval = Self.endless
        let task = session.dataTask(with: request)
        gate.withLock { $0.task = task }
        self.transfer.withLock { $0 = transfer }
        task.resume()
    }

    /// Closes the connections. The line must be idle.
    func close() {
        session.invalidateAndCancel()
    }

    /// True while Foundation takes in a response of which it has told nothing: a redirect's, up to the end of its body.
    var hasSilentResponse: Bool {
        #if canImport(FoundationNetworking)
            gate.withLock { $0.task }?.countOfBytesExpectedToReceive != 0
        #else
            false
        #endif
    }

    // MARK: Any thread

    /// Runs `job` where the callbacks come, and opens the gate for it.
    func post(_ job: @escaping @Sendable () -> Void) {
        gate.withLock { gate in
            gate.jobs += 1
            setHeld(false, &gate)
        }
        queue.async { [self] in
            gate.withLock { $0.jobs -= 1 }
            job()
            if current?.isPaused == true { hold() }
        }
    }

    /// Ends the present task soon; its end is still reported.
    func cancelTask() {
        guard let task = gate.withLock({ $0.task }) else { return }
        commands.async { [self] in
            // By then the line may serve another transfer, which only this queue could have begun.
            if gate.withLock({ $0.task === task }) { task.cancel() }
        }
    }

    // MARK: Callbacks

    /// Nothing more is read until `post`.
    func hold() {
        gate.withLock { gate in
            if gate.jobs == 0 { setHeld(true, &gate) }
        }
    }

    /// Frees the line for another transfer.
    func release() {
        transfer.withLock { $0 = nil }
        gate.withLock { $0.task = nil }
    }

    private func setHeld(_ isHeld: Bool, _ gate: inout Gate) {
        guard gate.isHeld != isHeld else { return }
        gate.isHeld = isHeld
        #if canImport(FoundationNetworking)
            if isHeld { queue.suspend() } else { queue.resume() }
        #else
            if isHeld { gate.task?.suspend() } else { gate.task?.resume() }
        #endif
    }

    private var current: URLSessionTransfer? { transfer.withLock { $0 } }

    func urlSession(
        _ session: URLSession, dataTask: URLSessionDataTask, didReceive response: URLResponse,
        completionHandler: @escaping @Sendable (URLSession.ResponseDisposition) -> Void
    ) {
        if let response = response as? HTTPURLResponse { current?.receive(response) }
        completionHandler(.allow)
    }

    func urlSession(_ session: URLSession, dataTask: URLSessionDataTask, didReceive data: Data) {
        if !data.isEmpty { current?.receive(data) }
    }

    /// Redirects are followed by the transfer with a new request: Foundation would send secrets along and drop bodies.
    func urlSession(
        _ session: URLSession, task: URLSessionTask, willPerformHTTPRedirection response: HTTPURLResponse,
        newRequest request: URLRequest, completionHandler: @escaping @Sendable (URLRequest?) -> Void
    ) {
        completionHandler(nil)
    }

    /// On Linux a 401 comes here behind its body, and a task whose delegate has no credential never ends
    /// (swift-corelibs-foundation #5456). On Apple's systems this is also asked for the server's certificate.
    func urlSession(
        _ session: URLSession, task: URLSessionTask, didReceive challenge: URLAuthenticationChallenge,
        completionHandler: @escaping @Sendable (URLSession.AuthChallengeDisposition, URLCredential?) -> Void
    ) {
        #if canImport(FoundationNetworking)
            current?.endsWithChallenge()
            commands.async { completionHandler(.cancelAuthenticationChallenge, nil) }
        #else
            completionHandler(.performDefaultHandling, nil)
        #endif
    }

    func urlSession(_ session: URLSession, task: URLSessionTask, didCompleteWithError error: (any Error)?) {
        current?.complete(task.response as? HTTPURLResponse, error)
    }
}

#if canImport(FoundationNetworking)
    /// Runs operations at once on the thread that adds them.
    private final class InlineQueue: OperationQueue, @unchecked Sendable {
        // Sendable because it has no state of its own.
        override func addOperation(_ block: @escaping @Sendable () -> Void) { block() }
    }
#endif
