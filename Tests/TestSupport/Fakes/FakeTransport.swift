import FKCore
import FKMiddleware
import Foundation

/// A transport without a network: every answer is a script, every moment is the test's.
///
/// Answers run on one queue of its own, so handlers are called as a real transport calls them: in order, never at
/// once, never before `start` returns.
public final class FakeTransport: Transport {
    /// What one request gets.
    public struct Answer: Sendable {
        public enum Step: Sendable {
            case head(ResponseHead)
            case bytes([UInt8])
            /// Goes on only once the gate is open.
            case wait(FakeGate)
            case fail(DownloadError)
            /// A good end; without this step it is one with a verified length.
            case finish(lengthVerified: Bool)
        }
        public var steps: [Step]
        public init(_ steps: [Step]) { self.steps = steps }

        /// A whole file with its length and a strong ETag, and ranges as RFC 9110 section 14 has them.
        ///
        /// - Parameters:
        ///   - cut: the connection is lost after so many body bytes.
        ///   - gate: the body waits here after `pauseAt` bytes.
        public static func file(
            _ content: [UInt8], etag: String? = "\"1\"", to request: TransportRequest, cut: Int? = nil,
            gate: FakeGate? = nil, pauseAt: Int = 0
        ) -> Answer {
            let url = request.urlRequest.url?.absoluteString ?? ""
            var fields = [ResponseHead.Field("Accept-Ranges", "bytes")]
            if let etag { fields.append(.init("ETag", etag)) }
            var body = content[...]
            var status = 200
            let ifRange = request.urlRequest.value(forHTTPHeaderField: "If-Range")
            if let range = request.urlRequest.value(forHTTPHeaderField: "Range"), ifRange == nil || ifRange == etag {
                let parts = range.dropFirst("bytes=".count).split(separator: "-", omittingEmptySubsequences: false)
                let start = Int(parts[0]) ?? 0
                let end = min(content.count, (parts.count > 1 ? Int(parts[1]).map { $0 + 1 } : nil) ?? content.count)
                guard start < end else {
                    fields.append(.init("Content-Range", "bytes */\(content.count)"))
                    return Answer([.head(ResponseHead(status: 416, fields: fields, url: url))])
                }
                body = content[start..<end]
                status = 206
                fields.append(.init("Content-Range", "bytes \(start)-\(end - 1)/\(content.count)"))
            }
            fields.append(.init("Content-Length", "\(body.count)"))
            var steps: [Step] = [.head(ResponseHead(status: status, fields: fields, url: url))]
            let stop = min(cut ?? body.count, body.count)
            let sent = Array(body.prefix(stop))
            if let gate {
                steps.append(.bytes(Array(sent.prefix(pauseAt))))
                steps.append(.wait(gate))
                steps.append(.bytes(Array(sent.dropFirst(pauseAt))))
            } else {
                steps.append(.bytes(sent))
            }
            if cut != nil { steps.append(.fail(DownloadError(.connectionLost, "cut", isRetryable: true))) }
            return Answer(steps)
        }

        public static func status(_ status: Int, _ fields: [ResponseHead.Field] = []) -> Answer {
            Answer([.head(ResponseHead(status: status, fields: fields, url: "http://fake/"))])
        }
    }

    private struct State {
        var requests: [TransportRequest] = []
        var waiters: [(count: Int, continuation: CheckedContinuation<Void, Never>)] = []
        var running = 0
        var peak = 0
        var isShutDown = false
    }

    private let state = Locked(State())
    private let pauses = Observed<[(seconds: Double, operation: FakeOperation)]>([])
    private let queue = DispatchQueue(label: "fk.fake.transport")
    private let answer: @Sendable (TransportRequest, Int) -> Answer

    /// - Parameter answer: called for each request with its number, from 1.
    public init(_ answer: @escaping @Sendable (TransportRequest, Int) -> Answer) { self.answer = answer }

    public var requests: [TransportRequest] { state.withLock { $0.requests } }
    /// The most transfers that ran at once.
    public var peak: Int { state.withLock { $0.peak } }
    public var isShutDown: Bool { state.withLock { $0.isShutDown } }

    /// Returns once so many requests have begun.
    public func started(_ count: Int) async {
        await withCheckedContinuation { continuation in
            let isReached = state.withLock { state in
                if state.requests.count >= count { return true }
                state.waiters.append((count, continuation))
                return false
            }
            if isReached { continuation.resume() }
        }
    }

    /// Returns the seconds of every pause with a time, once there are so many.
    public func paused(_ count: Int) async -> [Double] {
        await pauses.wait { $0.count >= count }.map(\.seconds)
    }

    /// Returns once everything that was due before now has been delivered.
    public func idle() async {
        await withCheckedContinuation { continuation in queue.async { continuation.resume() } }
    }

    /// Ends the pauses that have a time, as if it had passed.
    public func endPauses() { pauses.value.forEach { $0.operation.resume() } }

    public func start(_ request: TransportRequest, handler: any TransportHandler) -> any TransportOperation {
        let (number, reached) = state.withLock { state in
            state.requests.append(request)
            state.running += 1
            state.peak = max(state.peak, state.running)
            let count = state.requests.count
            let reached = state.waiters.filter { $0.count <= count }.map(\.continuation)
            state.waiters.removeAll { $0.count <= count }
            return (count, reached)
        }
        let operation = FakeOperation(
            queue: queue, handler: handler, answer: answer(request, number),
            onPause: { [pauses] seconds, operation in pauses.update { $0.append((seconds, operation)) } },
            onEnd: { [state] in state.withLock { $0.running -= 1 } })
        operation.run()
        reached.forEach { $0.resume() }
        return operation
    }

    public func shutdown() { state.withLock { $0.isShutDown = true } }
}

/// Holds an answer back until the test opens it.
public final class FakeGate: Sendable {
    private struct State {
        var isOpen = false
        var reached = false
        var waiting: [@Sendable () -> Void] = []
        var watchers: [CheckedContinuation<Void, Never>] = []
    }
    private let state = Locked(State())

    public init() {}

    public func open() {
        let waiting = state.withLock { state in
            state.isOpen = true
            defer { state.waiting = [] }
            return state.waiting
        }
        waiting.forEach { $0() }
    }

    /// Returns once an answer waits here.
    public func reached() async {
        await withCheckedContinuation { continuation in
            let isReached = state.withLock { state in
                if !state.reached { state.watchers.append(continuation) }
                return state.reached
            }
            if isReached { continuation.resume() }
        }
    }

    /// Returns once the gate is open.
    public func passed() async {
        await withCheckedContinuation { continuation in pass { continuation.resume() } }
    }

    func pass(_ goOn: @escaping @Sendable () -> Void) {
        let (isOpen, watchers) = state.withLock { state in
            state.reached = true
            if !state.isOpen { state.waiting.append(goOn) }
            defer { state.watchers = [] }
            return (state.isOpen, state.watchers)
        }
        watchers.forEach { $0.resume() }
        if isOpen { goOn() }
    }
}

private final class FakeOperation: TransportOperation, @unchecked Sendable {
    // Sendable because everything mutable is touched on `queue` only.
    private let queue: DispatchQueue
    private let handler: any TransportHandler
    private let onEnd: @Sendable () -> Void
    private let onPause: @Sendable (Double, FakeOperation) -> Void
    private var steps: [FakeTransport.Answer.Step]
    private var isEnded = false
    private var isPaused = false
    /// At a `FakeGate`: `resume()` does not lead past it.
    private var isWaiting = false
    private var delivered: Int64 = 0

    init(
        queue: DispatchQueue, handler: any TransportHandler, answer: FakeTransport.Answer,
        onPause: @escaping @Sendable (Double, FakeOperation) -> Void, onEnd: @escaping @Sendable () -> Void
    ) {
        self.queue = queue
        self.handler = handler
        self.onPause = onPause
        self.onEnd = onEnd
        steps = answer.steps.reversed()
    }

    func run() { queue.async { self.goOn() } }

    func cancel() { queue.async { self.end(.failure(DownloadError(.cancelled, "cancelled"))) } }

    func resume() {
        queue.async {
            guard self.isPaused else { return }
            self.isPaused = false
            self.goOn()
        }
    }

    private func passed() {
        queue.async {
            self.isWaiting = false
            self.goOn()
        }
    }

    private func goOn() {
        while !isEnded, !isPaused, !isWaiting, let step = steps.popLast() {
            switch step {
            case .head(let head):
                if case .fail(let error) = handler.transport(didReceive: head) { end(.failure(error)) }
            case .bytes(let bytes):
                guard !bytes.isEmpty else { continue }
                switch bytes.withUnsafeBytes({ handler.transport(didReceive: $0) }) {
                case .consumed: delivered += Int64(bytes.count)
                case .pause(let seconds):
                    steps.append(step)
                    isPaused = true
                    if let seconds { onPause(seconds, self) }
                case .enough: end(.success(.init(bodyBytes: delivered, lengthVerified: true)))
                case .fail(let error): end(.failure(error))
                }
            case .wait(let gate):
                isWaiting = true
                gate.pass { self.passed() }
            case .fail(let error): end(.failure(error))
            case .finish(let isVerified): end(.success(.init(bodyBytes: delivered, lengthVerified: isVerified)))
            }
        }
        if steps.isEmpty, !isPaused, !isWaiting { end(.success(.init(bodyBytes: delivered, lengthVerified: true))) }
    }

    private func end(_ result: Result<TransportSummary, DownloadError>) {
        guard !isEnded else { return }
        isEnded = true
        onEnd()
        handler.transportDidFinish(result)
    }
}
