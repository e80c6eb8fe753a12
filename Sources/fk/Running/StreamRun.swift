import FKCore
import FKManifests
import FKMiddleware
import Foundation

/// Runs the work of a command that reads streams, until it ends or a signal comes. Of a stream nothing is left on the disk then.
final class StreamRun: Sendable {
    private enum Result {
        case done(Int32)
        case failed(any Error)
        case signal(Int32)
    }

    private struct State {
        var result: Result?
        var waiter: CheckedContinuation<Result, Never>?
        var downloader: Downloader?
        var cleanUp: (@Sendable () -> Void)?
        var work: Task<Void, Never>?
    }

    private let context: CommandContext
    private let state = Locked(State())

    init(_ context: CommandContext) { self.context = context }

    /// - Parameter stopped: what a signal has left, and how to go on.
    /// - Returns: the status of the work, or of the signal.
    /// - Throws: the error of the work.
    func run(stopped: String, _ work: @escaping @Sendable (StreamRun) async throws -> Int32) async throws -> Int32 {
        TransportLibrary.prepare()
        let trap = SignalTrap { [self] number in end(.signal(number)) }
        let task = Task { [self] in
            do { end(.done(try await work(self))) } catch { end(.failed(error)) }
        }
        state.withLock { $0.work = task }
        let result = await value
        task.cancel()
        let (downloader, cleanUp) = state.withLock { ($0.downloader, $0.cleanUp) }
        // A reader of standard output that does not read must not keep the process, so the work is not waited for.
        await downloader?.close()
        cleanUp?()
        withExtendedLifetime(trap) {}
        switch result {
        case .done(let status): return status
        case .signal(let number):
            if !context.global.quiet { context.say(stopped) }
            return SignalTrap.exitStatus(number)
        case .failed(let error): throw error
        }
    }

    /// This downloader is closed at the end.
    func opened(_ downloader: Downloader) {
        downloader.registerTokens(context.environment)
        state.withLock { $0.downloader = downloader }
    }

    /// Cancels the work, which ends with an error of its own.
    func cancelWork() { state.withLock(\.work)?.cancel() }

    /// Calls `body` at the end, also after a signal.
    func whenOver(_ body: @escaping @Sendable () -> Void) { state.withLock { $0.cleanUp = body } }

    private func end(_ result: Result) {
        let waiter = state.withLock { state -> CheckedContinuation<Result, Never>? in
            guard state.result == nil else { return nil }
            state.result = result
            return state.waiter.take()
        }
        waiter?.resume(returning: result)
    }

    private var value: Result {
        get async {
            await withCheckedContinuation { waiter in
                let result = state.withLock { state -> Result? in
                    if state.result == nil { state.waiter = waiter }
                    return state.result
                }
                if let result { waiter.resume(returning: result) }
            }
        }
    }
}

/// Writes chunks on a thread of its own: a reader that does not read blocks nothing else.
final class StreamOutput: Sendable {
    private let descriptor: Int32
    private let queue = DispatchQueue(label: "fk.output")

    init(_ descriptor: Int32) { self.descriptor = descriptor }

    /// - Returns: the system's error number; nil if all of it was written.
    func write(_ chunk: Data) async -> Int32? {
        await withCheckedContinuation { done in
            queue.async { [descriptor] in
                let isWritten = chunk.withUnsafeBytes { Glue.writeAll(descriptor, $0) }
                done.resume(returning: isWritten ? nil : errno)
            }
        }
    }
}

/// The line on standard error about a stream, only if that is a terminal.
final class StreamProgress {
    private let output: OutputStream?
    private let began = ContinuousClock.now
    private var shown: ContinuousClock.Instant
    private var received: Int64 = 0
    private var isShown = false

    /// - Parameter isTerminalFree: false if something else may be written to the terminal.
    init(_ context: CommandContext, isTerminalFree: Bool) {
        let global = context.global
        let isWanted = isTerminalFree && global.progress && context.errorTerminal(global.color).canMoveCursor
        output = isWanted ? context.errors : nil
        shown = began
    }

    func add(_ count: Int, of length: Int64?) {
        guard let output else { return }
        received += Int64(count)
        let now = ContinuousClock.now
        guard now - shown > .milliseconds(500) else { return }
        shown = now
        let seconds = (now - began) / .seconds(1)
        var parts = [Formatting.amount(received, of: length), Formatting.rate(Double(received) / seconds)]
        if length != nil { parts.insert(Formatting.percent(received, of: length), at: 1) }
        output.write("\r\(parts.joined(separator: ", "))\u{1b}[K")
        isShown = true
    }

    func clear() {
        if isShown { output?.write("\r\u{1b}[K") }
        isShown = false
        received = 0
    }
}
