import FKCore
import FKEngine
import FKMiddleware
import Foundation

/// A transport without a network: every answer is a script, every moment is the test's.
///
/// It keeps the contract of `Transport` and does nothing beyond it. Answers run on one queue, so handlers are called in
/// order, one at a time, and never before `start` returns. A pause with a time ends when the clock reaches that time. A
/// pause without a time ends with `resume()`. `shutdown()` ends running transfers with `.cancelled`; so does a later
/// `start`.
public final class ScriptedTransport: Transport {
    /// What one request gets.
    public struct Answer: Sendable {
        /// One thing that the server does.
        public enum Step: Sendable {
            /// Sends the head.
            case head(ResponseHead)
            /// Sends a part of the body.
            case bytes([UInt8])
            /// Goes on only once the gate is open.
            case wait(TestGate)
            /// The transfer ends with an error.
            case fail(DownloadError)
            /// A good end; without this step it is one with a verified length.
            case finish(lengthVerified: Bool)
        }
        /// The steps, in order.
        public var steps: [Step]
        /// Creates an answer of these steps.
        public init(_ steps: [Step]) { self.steps = steps }

        /// A whole file with its length and a strong ETag, and ranges as RFC 9110 section 14 has them.
        ///
        /// - Parameters:
        ///   - cut: the connection is lost after so many body bytes.
        ///   - gate: the body waits here after `pauseAt` bytes.
        ///   - fields: further fields of the head.
        public static func file(
            _ content: [UInt8], etag: String? = "\"1\"", to request: TransportRequest, cut: Int? = nil,
            gate: TestGate? = nil, pauseAt: Int = 0, fields extra: [HeaderField] = []
        ) -> Answer {
            let url = request.urlRequest.url?.absoluteString ?? ""
            var fields = extra + [HeaderField("Accept-Ranges", "bytes")]
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

        /// A head without a body.
        public static func status(_ status: Int, _ fields: [HeaderField] = []) -> Answer {
            Answer([.head(ResponseHead(status: status, fields: fields, url: "http://fake/"))])
        }
    }

    private struct State {
        var requests: [TransportRequest] = []
        var running: [Int: ScriptedTransfer] = [:]
        var peak = 0
        var isShutDown = false
    }

    private let state = Locked(State())
    private let begun = Observed(0)
    private let pauses = Observed<[Double]>([])
    private let activity = Observed(0)
    private let queue = DispatchQueue(label: "fk.fake.transport")
    private static let queueKey = DispatchSpecificKey<ObjectIdentifier>()
    private let clock: ManualClock
    private let answer: @Sendable (TransportRequest, Int) -> Answer

    /// Creates a transport.
    ///
    /// - Parameters:
    ///   - clock: the time by which pauses end; the default one stands still.
    ///   - answer: called for each request with its number, from 1.
    public init(
        clock: ManualClock = ManualClock(), _ answer: @escaping @Sendable (TransportRequest, Int) -> Answer
    ) {
        self.clock = clock
        self.answer = answer
        clock.onManualChange { [weak self] in
            guard let self else { return }
            queue.async { for operation in self.operations { operation.timeHasPassed() } }
        }
        queue.setSpecific(key: Self.queueKey, value: ObjectIdentifier(self))
    }

    deinit { operations.forEach { $0.cancel() } }

    /// The requests so far, after all request middlewares.
    public var requests: [TransportRequest] { state.withLock { $0.requests } }
    /// How many transfers run now.
    package var running: Int { state.withLock { $0.running.count } }
    /// The most transfers that ran at once.
    package var peak: Int { state.withLock { $0.peak } }
    package var isShutDown: Bool { state.withLock { $0.isShutDown } }
    /// Grows with each call to an operation or a handler: while it stays the same, nothing happens here.
    package var events: Int { activity.value }

    /// Returns once that many requests have begun.
    package func started(_ count: Int) async { _ = await begun.wait { $0 >= count } }

    /// Returns the seconds of every pause with a time, once there are that many.
    package func paused(_ count: Int) async -> [Double] { await pauses.wait { $0.count >= count } }

    /// Returns once everything that was due before now has been delivered.
    package func idle() async {
        await withCheckedContinuation { continuation in queue.async { continuation.resume() } }
    }

    /// Returns once there has been an event after this number of events.
    package func event(after count: Int) async { _ = await activity.wait { $0 > count } }

    /// Starts a transfer; its answer comes from the script.
    public func start(_ request: TransportRequest, handler: any TransportHandler) -> any TransportOperation {
        let number = state.withLock { state in
            state.requests.append(request)
            return state.requests.count
        }
        let operation = ScriptedTransfer(
            queue: queue, handler: handler, clock: clock, answer: answer(request, number),
            onEvent: { [activity] in activity.update { $0 += 1 } },
            onPause: { [pauses] seconds in pauses.update { $0.append(seconds) } },
            onEnd: { [state] in state.withLock { _ = $0.running.removeValue(forKey: number) } })
        let isShutDown = state.withLock { state in
            guard !state.isShutDown else { return true }
            state.running[number] = operation
            state.peak = max(state.peak, state.running.count)
            return false
        }
        if isShutDown { operation.cancel() } else { operation.run() }
        begun.update { $0 += 1 }
        return operation
    }

    /// Returns when every handler has had its end; inside a callback it does not wait.
    public func shutdown() {
        state.withLock { $0.isShutDown = true }
        operations.forEach { $0.cancel() }
        if DispatchQueue.getSpecific(key: Self.queueKey) != ObjectIdentifier(self) { queue.sync {} }
    }

    /// What runs, in the order of its requests.
    private var operations: [ScriptedTransfer] {
        state.withLock { $0.running }.sorted { $0.key < $1.key }.map(\.value)
    }
}
