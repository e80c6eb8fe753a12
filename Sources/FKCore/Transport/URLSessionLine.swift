import Dispatch
import FKMiddleware
import Foundation

/// A URL session for successive transfers, whose flow can be stopped.
///
/// The way to stop the flow differs:
/// - On Linux, `suspend()` on a task closes its connection, and a slow delegate only makes its queue grow without
///   bound, because libcurl continues to read on another queue (swift-corelibs-foundation #3204). The delegate is
///   therefore called directly on the reading queue, and suspending that queue holds the transfer: nothing is read,
///   and TCP stops the server. The queue is a private property of URLSession, found by reflection.
/// - On Apple's systems, `suspend()` on a task holds it.
final class URLSessionLine: NSObject, URLSessionDataDelegate, @unchecked Sendable {
    // Sendable because `session` and the queues are set once in `init`, and locks protect `gate` and `transfer`.
    let origin: URLOrigin
    private let commands: DispatchQueue
    private var session: URLSession!
    /// The queue of the callbacks, and the target of other queues.
    private var callbacks: DispatchQueue!
    /// The queue that reads and calls back; on Linux only.
    private var reading: DispatchQueue?
    private let gate = Locked(Gate())
    private let transfer = Locked<URLSessionTransfer?>(nil)

    private struct Gate {
        /// Reasons to hold the line: a paused transfer, or the turn of other sessions.
        var isPaused = false
        var isTurn = false
        /// Foundation has not started the task yet. Nothing may be read before libcurl's options are set.
        var isBeginning = false
        /// True if the line is held.
        var isHeld = false
        var task: URLSessionTask?
        var keepsCoding = false
    }

    /// Creates a line; nil if this Foundation's URLSession has no queue that can be suspended.
    ///
    /// - Parameter commands: the queue on which tasks are created and cancelled.
    init?(origin: URLOrigin, networks: Networks, commands: DispatchQueue) {
        self.origin = origin
        self.commands = commands
        super.init()
        let configuration = Self.configuration(networks)
        #if canImport(FoundationNetworking)
            session = URLSession(configuration: configuration, delegate: self, delegateQueue: InlineQueue())
            callbacks = Self.property("workQueue", of: session!) as? DispatchQueue
            let handle = Self.property("multiHandle", of: session!)
            reading = handle.flatMap { Self.property("queue", of: $0) } as? DispatchQueue
            if callbacks == nil || reading == nil {
                session.invalidateAndCancel()
                return nil
            }
        #else
            callbacks = DispatchQueue(label: "fk.urlsession.callbacks")
            let operations = OperationQueue()
            operations.underlyingQueue = callbacks
            operations.maxConcurrentOperationCount = 1
            session = URLSession(configuration: configuration, delegate: self, delegateQueue: operations)
        #endif
    }

    #if canImport(FoundationNetworking)
        private static func property(_ name: String, of owner: Any) -> Any? {
            Mirror(reflecting: owner).children.first { $0.label == name }?.value
        }

        /// The queue of a session without transfers. The queues of all sessions take turns on one target queue.
        private static let turns =
            property("workQueue", of: URLSession(configuration: .ephemeral)) as? DispatchQueue
    #endif

    /// No cache, no cookies, no saved passwords and no time-outs, because the transfer has its own.
    static func configuration(_ networks: Networks) -> URLSessionConfiguration {
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
            // It is not `URLSessionConfiguration.background`, which runs no data tasks (see `Networks`). This code
            // was never run by us.
            if networks.isBackground {
                configuration.networkServiceType = .background
                configuration.waitsForConnectivity = true
            }
        #endif
        return configuration
    }

    /// Ten years, in seconds.
    private static let endless = 315_360_000.0

    // MARK: The hub's queue

    /// Starts a request. The transfer must not have another one running on this line.
    func begin(_ request: URLRequest, for transfer: URLSessionTransfer) {
        var request = request
        request.timeoutInterval = Self.endless
        let task = session.dataTask(with: request)
        gate.withLock { gate in
            gate.task = task
            gate.keepsCoding = false
        }
        self.transfer.withLock { $0 = transfer }
        #if canImport(FoundationNetworking)
            change { $0.isBeginning = true }
        #endif
        task.resume()
        #if canImport(FoundationNetworking)
            keepCoding(of: task, tries: 0)
        #endif
    }

    #if canImport(FoundationNetworking)
        /// Waits until Foundation has started the task, in a later turn of its queues, and then sets libcurl's options. Nothing
        /// is read meanwhile. It checks 100 times without a pause, then every millisecond, and gives up after about ten
        /// seconds, because this can take long on a busy machine.
        private func keepCoding(of task: URLSessionTask, tries: Int) {
            let look: @Sendable () -> Void = { [self] in
                guard gate.withLock({ $0.task === task }) else { return }
                let keepsCoding = FoundationTask.keepCoding(of: task)
                if keepsCoding == nil, tries < 10_000 { return keepCoding(of: task, tries: tries + 1) }
                change { gate in
                    guard gate.task === task else { return }
                    gate.keepsCoding = keepsCoding ?? false
                    gate.isBeginning = false
                }
            }
            if tries < 100 {
                callbacks.async(execute: look)
            } else {
                callbacks.asyncAfter(deadline: .now() + .milliseconds(1), execute: look)
            }
        }
    #endif

    /// True if the body of the current response keeps the content coding that its head names.
    var keepsCoding: Bool { gate.withLock { $0.keepsCoding } }

    /// Closes the connections. The line must be idle.
    func close() {
        session.invalidateAndCancel()
    }

    /// The length of a response that Foundation receives without reporting it, as it does with a redirect and its
    /// body. nil if there is none, below 0 if the length is unknown.
    var silentLength: Int64? {
        #if canImport(FoundationNetworking)
            let length = gate.withLock { $0.task }?.countOfBytesExpectedToReceive ?? 0
            return length == 0 ? nil : length
        #else
            return nil
        #endif
    }

    /// The response that Foundation has not reported, if it is available. Call it where the callbacks run.
    var silentResponse: HTTPURLResponse? {
        #if canImport(FoundationNetworking)
            gate.withLock { $0.task }.flatMap(FoundationTask.response)
        #else
            nil
        #endif
    }

    // MARK: Any thread

    /// Runs `job` where the callbacks run, also while the line is held.
    func post(_ job: @escaping @Sendable () -> Void) {
        callbacks.async(execute: job)
    }

    /// Ends the current task soon. Its end is still reported. Nothing is read meanwhile, because a fast server would
    /// delay the end.
    func cancelTask() {
        guard let task = gate.withLock({ $0.task }) else { return }
        change { $0.isPaused = true }
        commands.async { [self] in
            // By then the line may serve another transfer, which only this queue could have started.
            if gate.withLock({ $0.task === task }) { task.cancel() }
        }
    }

    /// Lets other sessions and commands run. While a server sends faster than the session reads, libdispatch stays
    /// with this session's queue and runs nothing else of Foundation's.
    func giveTurn() {
        #if canImport(FoundationNetworking)
            change { $0.isTurn = $0.task != nil }
            Self.afterOthers { self.change { $0.isTurn = false } }
        #endif
    }

    /// Runs `job` when every session that waited for its turn has had it.
    static func afterOthers(_ job: @escaping @Sendable () -> Void) {
        #if canImport(FoundationNetworking)
            if let turns { return turns.async(execute: job) }
        #endif
        job()
    }

    // MARK: Callbacks

    /// True stops reading; false resumes it.
    func hold(_ isPaused: Bool) {
        change { $0.isPaused = isPaused }
    }

    /// Releases the line for another transfer.
    func release() {
        transfer.withLock { $0 = nil }
        change { $0 = Gate(isHeld: $0.isHeld) }
    }

    private func change(_ body: (inout Gate) -> Void) {
        gate.withLock { gate in
            body(&gate)
            let isHeld = gate.isPaused || gate.isTurn || gate.isBeginning
            guard gate.isHeld != isHeld else { return }
            gate.isHeld = isHeld
            #if canImport(FoundationNetworking)
                if isHeld { reading?.suspend() } else { reading?.resume() }
            #else
                if isHeld { gate.task?.suspend() } else { gate.task?.resume() }
            #endif
        }
    }

    private var current: URLSessionTransfer? { transfer.withLock { $0 } }

    func urlSession(
        _ session: URLSession, dataTask: URLSessionDataTask, didReceive response: URLResponse,
        completionHandler: @escaping @Sendable (URLSession.ResponseDisposition) -> Void
    ) {
        #if canImport(FoundationNetworking)
            FoundationTask.dropTrailers(of: dataTask, response)
        #endif
        if let response = response as? HTTPURLResponse { current?.receive(response) }
        completionHandler(.allow)
    }

    func urlSession(_ session: URLSession, dataTask: URLSessionDataTask, didReceive data: Data) {
        if !data.isEmpty { current?.receive(data) }
    }

    /// The transfer follows redirects with a new request: Foundation would send secrets along and drop bodies.
    func urlSession(
        _ session: URLSession, task: URLSessionTask, willPerformHTTPRedirection response: HTTPURLResponse,
        newRequest request: URLRequest, completionHandler: @escaping @Sendable (URLRequest?) -> Void
    ) {
        completionHandler(nil)
    }

    /// On Linux a 401 arrives here after its body, and a task whose delegate has no credential never ends
    /// (swift-corelibs-foundation #5456). On Apple's systems this is also called for the server's certificate.
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
    /// Runs operations immediately on the thread that adds them.
    private final class InlineQueue: OperationQueue, @unchecked Sendable {
        // Sendable because it has no state of its own.
        override func addOperation(_ block: @escaping @Sendable () -> Void) { block() }
    }
#endif
