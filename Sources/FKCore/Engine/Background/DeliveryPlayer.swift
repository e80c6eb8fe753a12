import Dispatch
import FKMiddleware
import Foundation

/// Delivers the file of a piece to the handler of a transfer, as a transport delivers a body.
final class DeliveryPlayer: Sendable {
    private struct State {
        var isCancelled = false
        /// True while the handler waits for `resume`.
        var isPaused = false
        /// True if `resume` came before the handler's answer was seen.
        var wasResumed = false
    }

    /// The number of bytes that are handed over at a time.
    private static let chunk = 256 << 10

    private let piece: Delivery
    private let skip: Int64
    private let path: String
    private let handler: any TransportHandler
    private let queue: DispatchQueue
    private let state = Locked(State())
    private let position: Locked<Int64>
    private let descriptor = Locked<Int32>(-1)

    init(_ piece: Delivery, skip: Int64, path: String, handler: any TransportHandler, queue: DispatchQueue) {
        self.piece = piece
        self.skip = skip
        self.path = path
        self.handler = handler
        self.queue = queue
        position = Locked(skip)
    }

    func start() { queue.async { self.begin() } }

    func cancel() {
        let isPaused = state.withLock { state in
            state.isCancelled = true
            defer { state.isPaused = false }
            return state.isPaused
        }
        if isPaused { queue.async { self.play() } }
    }

    func resume() {
        let isPaused = state.withLock { state in
            if !state.isPaused { state.wasResumed = true }
            defer { state.isPaused = false }
            return state.isPaused
        }
        if isPaused { queue.async { self.play() } }
    }

    // MARK: The queue

    private func begin() {
        if let error = handler.refusal(of: piece.head(without: skip)) { return end(.failure(error)) }
        do {
            let file = try FileIO.open(path, O_RDONLY)
            descriptor.withLock { $0 = file }
        } catch {
            return end(.failure(DownloadError(wrapping: error, code: .incompleteBody, message: "The piece is gone.")))
        }
        play()
    }

    private func play() {
        let file = descriptor.withLock(\.self)
        var buffer = [UInt8](repeating: 0, count: Self.chunk)
        while true {
            if state.withLock(\.isCancelled) { return end(.failure(Self.cancelled)) }
            let offset = position.withLock(\.self)
            let count = buffer.withUnsafeMutableBytes { pread(file, $0.baseAddress, $0.count, off_t(offset)) }
            guard count > 0 else { return finish(at: offset, failed: count < 0) }
            state.withLock { $0.wasResumed = false }
            switch buffer.withUnsafeBytes({
                handler.transport(didReceive: UnsafeRawBufferPointer(rebasing: $0[..<count]))
            }) {
            case .consumed: position.withLock { $0 += Int64(count) }
            case .pause(nil):
                let waits = state.withLock { state in
                    state.isPaused = !state.wasResumed && !state.isCancelled
                    return state.isPaused
                }
                if waits { return }
            case .pause(let time?):
                return queue.asyncAfter(deadline: .now() + time.inSeconds) { self.play() }
            case .enough: return end(.success(summary(at: offset + Int64(count))))
            case .fail(let error): return end(.failure(error))
            }
        }
    }

    /// The file has ended. It may be shorter than announced: the system's disk was full, or the connection was cut.
    private func finish(at offset: Int64, failed: Bool) {
        if failed { return end(.failure(DownloadError(system: errno, "read", path))) }
        if let announced = piece.announced, offset < announced {
            let error = DownloadError(
                .incompleteBody, "The delivered file has \(offset) of \(announced.plural("byte")).", isRetryable: true)
            return end(.failure(error))
        }
        end(.success(summary(at: offset)))
    }

    private func summary(at offset: Int64) -> TransportSummary {
        TransportSummary(bodyBytes: offset - skip, lengthVerified: piece.announced != nil)
    }

    private func end(_ result: Result<TransportSummary, DownloadError>) {
        let file = descriptor.withLock { file in
            defer { file = -1 }
            return file
        }
        if file >= 0 { FileIO.close(file) }
        handler.transportDidFinish(result)
    }

    static let cancelled = DownloadError(.cancelled, "The transfer was cancelled.")
}
