import FKEngine
import FKMiddleware

/// The values of a sequence that its reader has not taken yet.
final class SequenceBuffer<Element: Sendable>: Sendable {
    enum Keeping {
        case all
        /// The first value until it is taken, and the newest one.
        case firstAndNewest
    }

    private struct State {
        var waiting: [Element] = []
        var isFirstTaken = false
        var isOver = false
        var reader: CheckedContinuation<Element?, Never>?
        /// Removes the listener; nil before it is registered and after it was called.
        var onEnd: (@Sendable () -> Void)?

        /// The number of values that newer ones must not replace.
        var kept: Int { isFirstTaken ? 0 : 1 }
    }

    private let state = Locked(State())
    private let keeping: Keeping

    init(_ keeping: Keeping) { self.keeping = keeping }

    func yield(_ element: Element) {
        let reader = state.withLock { state -> CheckedContinuation<Element?, Never>? in
            guard !state.isOver else { return nil }
            if let reader = state.reader.take() {
                state.isFirstTaken = true
                return reader
            }
            if keeping == .firstAndNewest, state.waiting.count > state.kept { state.waiting.removeLast() }
            state.waiting.append(element)
            return nil
        }
        reader?.resume(returning: element)
    }

    /// Ends the sequence. Values in the buffer are still delivered.
    func end() {
        let (reader, onEnd) = state.withLock { state in
            state.isOver = true
            return (state.reader.take(), state.onEnd.take())
        }
        reader?.resume(returning: nil)
        onEnd?()
    }

    /// Calls `body` at the end; at once if the sequence has ended.
    func onEnd(_ body: @escaping @Sendable () -> Void) {
        let isOver = state.withLock { state in
            if !state.isOver { state.onEnd = body }
            return state.isOver
        }
        if isOver { body() }
    }

    /// The next value; nil at the end. Cancelling the reader ends the sequence.
    func next() async -> Element? {
        await withTaskCancellationHandler {
            await withCheckedContinuation { continuation in
                let next = state.withLock { state -> Element?? in
                    if !state.waiting.isEmpty {
                        state.isFirstTaken = true
                        return state.waiting.removeFirst()
                    }
                    if state.isOver || state.reader != nil { return .some(nil) }
                    state.reader = continuation
                    return nil
                }
                if let next { continuation.resume(returning: next) }
            }
        } onCancel: {
            end()
        }
    }
}

/// Ends the sequence when no reader is left.
private final class SequenceReader<Element: Sendable>: Sendable {
    let buffer: SequenceBuffer<Element>
    init(_ buffer: SequenceBuffer<Element>) { self.buffer = buffer }
    deinit { buffer.end() }
}

extension Messager {
    /// A sequence of the values that an engine's listener receives. It removes the listener when it ends, when its
    /// reader is cancelled, and when it is released.
    func sequence<Element: Sendable>(
        _ keeping: SequenceBuffer<Element>.Keeping,
        _ observe:
            @escaping @Sendable (
                any EngineAccess, _ yield: @escaping @Sendable (Element) -> Void, _ end: @escaping @Sendable () -> Void
            ) async throws -> UInt64
    ) -> AsyncStream<Element> {
        let buffer = SequenceBuffer<Element>(keeping)
        Task { [engine] in
            do {
                let number = try await observe(engine, { buffer.yield($0) }, { buffer.end() })
                buffer.onEnd { Task { await engine.stopObserving(number) } }
            } catch {
                // A sequence throws nothing, and its end would look like that of a task.
                let wrong: [DownloadError.Code] = [.invalidArgument, .invalidURL, .unsupportedScheme]
                if let error = error as? DownloadError, wrong.contains(error.code) {
                    await engine.recordProblem(error)
                }
                buffer.end()
            }
        }
        let reader = SequenceReader(buffer)
        return AsyncStream { await reader.buffer.next() }
    }
}
