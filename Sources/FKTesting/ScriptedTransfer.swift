import FKCore
import FKEngine
import FKMiddleware
import Foundation

/// One transfer of a `ScriptedTransport`.
final class ScriptedTransfer: TransportOperation, @unchecked Sendable {
    // Sendable because everything mutable is touched on `queue` only.
    private enum Halt: Equatable {
        case no
        /// The handler has paused it, until a time of the clock where it named one.
        case paused(until: Int64?)
        /// At a `TestGate`: neither `resume()` nor the time leads past it.
        case atGate
        case ended
    }

    private let queue: DispatchQueue
    private let handler: any TransportHandler
    private let clock: ManualClock
    private let onEvent: @Sendable () -> Void
    private let onPause: @Sendable (Double) -> Void
    private let onEnd: @Sendable () -> Void
    private var steps: [ScriptedTransport.Answer.Step]
    private var halt = Halt.no
    private var delivered: Int64 = 0

    init(
        queue: DispatchQueue, handler: any TransportHandler, clock: ManualClock, answer: ScriptedTransport.Answer,
        onEvent: @escaping @Sendable () -> Void, onPause: @escaping @Sendable (Double) -> Void,
        onEnd: @escaping @Sendable () -> Void
    ) {
        self.queue = queue
        self.handler = handler
        self.clock = clock
        self.onEvent = onEvent
        self.onPause = onPause
        self.onEnd = onEnd
        steps = answer.steps.reversed()
    }

    func run() { perform { self.proceed() } }

    func cancel() { perform { self.end(.failure(DownloadError(.cancelled, "cancelled"))) } }

    func resume() {
        perform {
            guard case .paused = self.halt else { return }
            self.halt = .no
            self.proceed()
        }
    }

    /// The clock was moved; on `queue`.
    func timeHasPassed() {
        guard case .paused(let until?) = halt, until <= clock.now else { return }
        halt = .no
        proceed()
    }

    private func passed() {
        perform {
            guard self.halt == .atGate else { return }
            self.halt = .no
            self.proceed()
        }
    }

    private func perform(_ body: @escaping @Sendable () -> Void) {
        onEvent()
        queue.async(execute: body)
    }

    private func proceed() {
        while halt == .no {
            guard let step = steps.popLast() else {
                return end(.success(.init(bodyBytes: delivered, lengthVerified: true)))
            }
            perform(step)
            onEvent()
        }
    }

    private func perform(_ step: ScriptedTransport.Answer.Step) {
        switch step {
        case .head(let head):
            if let error = handler.refusal(of: head) { end(.failure(error)) }
        case .bytes(let bytes):
            guard !bytes.isEmpty else { return }
            switch bytes.withUnsafeBytes({ handler.transport(didReceive: $0) }) {
            case .consumed: delivered += Int64(bytes.count)
            case .pause(let time):
                let seconds = time?.inSeconds
                steps.append(step)
                halt = .paused(until: seconds.map { clock.now + Int64(($0 * 1e9).rounded(.up)) })
                if let seconds { onPause(seconds) }
            case .enough:
                delivered += Int64(bytes.count)
                end(.success(.init(bodyBytes: delivered, lengthVerified: true)))
            case .fail(let error): end(.failure(error))
            }
        case .wait(let gate):
            halt = .atGate
            gate.pass { self.passed() }
        case .fail(let error): end(.failure(error))
        case .finish(let isVerified): end(.success(.init(bodyBytes: delivered, lengthVerified: isVerified)))
        }
    }

    private func end(_ result: Result<TransportSummary, DownloadError>) {
        guard halt != .ended else { return }
        halt = .ended
        // First: from its end a handler may start another transfer, which runs instead of this one.
        onEnd()
        handler.transportDidFinish(result)
        onEvent()
    }
}
