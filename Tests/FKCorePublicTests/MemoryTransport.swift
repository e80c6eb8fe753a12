import FKCore
import FKMiddleware
import Foundation

#if canImport(FoundationNetworking)
    import FoundationNetworking
#endif

/// A transport as an application may hand in its own: it serves files from memory, with ranges and strong ETags.
///
/// It is written against the public API alone, as everything in this target.
final class MemoryTransport: Transport {
    private struct State {
        var files: [String: [UInt8]] = [:]
        /// Bodies of these paths stop after this many bytes, until they are released.
        var holds: [String: Int] = [:]
        var waiting: [String: [@Sendable () -> Void]] = [:]
        var requests: [URLRequest] = []
        var running: [ObjectIdentifier: MemoryTransfer] = [:]
        var isShutDown = false
    }

    private let lock = NSLock()
    // Guarded by `lock`.
    nonisolated(unsafe) private var state = State()

    private func withState<Result>(_ body: (inout State) -> Result) -> Result {
        lock.lock()
        defer { lock.unlock() }
        return body(&state)
    }

    /// - Parameter hold: the body stops after this many bytes until `release`.
    func serve(_ path: String, _ bytes: [UInt8], hold: Int? = nil) {
        withState {
            $0.files[path] = bytes
            $0.holds[path] = hold
        }
    }

    /// Lets the rest of the body come.
    func release(_ path: String) {
        let waiting = withState {
            $0.holds[path] = nil
            return $0.waiting.removeValue(forKey: path) ?? []
        }
        waiting.forEach { $0() }
    }

    /// Requests begun so far, after all request middlewares.
    var requests: [URLRequest] { withState { $0.requests } }

    func start(_ request: TransportRequest, handler: any TransportHandler) -> any TransportOperation {
        let path = request.urlRequest.url?.path ?? ""
        let bytes = withState {
            $0.requests.append(request.urlRequest)
            return $0.files[path]
        }
        let transfer = MemoryTransfer(
            handler: handler,
            mayPass: { [weak self] offset, proceed in
                guard let self else { return true }
                return self.withState {
                    guard let hold = $0.holds[path], offset >= hold else { return true }
                    $0.waiting[path, default: []].append(proceed)
                    return false
                }
            },
            onEnd: { [weak self] transfer in self?.withState { $0.running[ObjectIdentifier(transfer)] = nil } })
        let isShutDown = withState {
            if !$0.isShutDown { $0.running[ObjectIdentifier(transfer)] = transfer }
            return $0.isShutDown
        }
        if isShutDown { transfer.cancel() } else { transfer.begin(MemoryTransport.answer(request.urlRequest, bytes)) }
        return transfer
    }

    func shutdown() {
        let running = withState {
            $0.isShutDown = true
            return Array($0.running.values)
        }
        running.forEach { $0.cancel() }
    }

    /// What a server of unchanging files answers (RFC 9110 sections 14.2 and 15.5.5).
    private static func answer(_ request: URLRequest, _ bytes: [UInt8]?) -> (ResponseHead, ArraySlice<UInt8>) {
        let url = request.url?.absoluteString ?? ""
        guard let bytes else {
            return (ResponseHead(status: 404, fields: [.init("Content-Length", "0")], url: url), [])
        }
        var fields: [ResponseHead.Field] = [.init("ETag", "\"\(bytes.count)\""), .init("Accept-Ranges", "bytes")]
        guard let range = request.value(forHTTPHeaderField: "Range"),
            let bounds = range.split(separator: "=").last?.split(separator: "-", omittingEmptySubsequences: false),
            let start = Int(bounds[0]), start < bytes.count
        else {
            fields.append(.init("Content-Length", "\(bytes.count)"))
            return (ResponseHead(status: 200, fields: fields, url: url), bytes[...])
        }
        let end = min(bounds.count > 1 ? Int(bounds[1]).map { $0 + 1 } ?? bytes.count : bytes.count, bytes.count)
        fields.append(.init("Content-Length", "\(end - start)"))
        fields.append(.init("Content-Range", "bytes \(start)-\(end - 1)/\(bytes.count)"))
        return (ResponseHead(status: 206, fields: fields, url: url), bytes[start..<end])
    }
}

/// One transfer: all calls to its handler come from its serial queue, in order.
private final class MemoryTransfer: TransportOperation {
    private let queue = DispatchQueue(label: "memory transfer")
    private let handler: any TransportHandler
    /// Whether the body may go beyond this offset; keeps the closure for later if not.
    private let mayPass: @Sendable (_ offset: Int, _ proceed: @escaping @Sendable () -> Void) -> Bool
    private let onEnd: @Sendable (MemoryTransfer) -> Void
    // All confined to `queue`.
    nonisolated(unsafe) private var rest: ArraySlice<UInt8> = []
    nonisolated(unsafe) private var sent = 0
    nonisolated(unsafe) private var isOver = false

    init(
        handler: any TransportHandler,
        mayPass: @escaping @Sendable (_ offset: Int, _ proceed: @escaping @Sendable () -> Void) -> Bool,
        onEnd: @escaping @Sendable (MemoryTransfer) -> Void
    ) {
        self.handler = handler
        self.mayPass = mayPass
        self.onEnd = onEnd
    }

    func begin(_ answer: (head: ResponseHead, body: ArraySlice<UInt8>)) {
        queue.async { [self] in
            guard !isOver else { return }
            rest = answer.body
            do throws(DownloadError) {
                try handler.transport(didReceive: answer.head)
                deliver()
            } catch {
                finish(.failure(error))
            }
        }
    }

    func cancel() {
        queue.async { [self] in finish(.failure(DownloadError(.cancelled, "The transfer was cancelled."))) }
    }

    func resume() { queue.async { [self] in deliver() } }

    private func deliver() {
        while !isOver, !rest.isEmpty {
            let piece = rest.prefix(1_000)
            guard mayPass(piece.startIndex, { [self] in resume() }) else { return }
            switch Array(piece).withUnsafeBytes({ handler.transport(didReceive: $0) }) {
            case .consumed:
                rest = rest.dropFirst(piece.count)
                sent += piece.count
            case .pause(let time):
                if let time { queue.asyncAfter(deadline: .now() + time / .seconds(1)) { [self] in deliver() } }
                return
            case .enough:
                sent += piece.count
                return finish(.success(TransportSummary(bodyBytes: Int64(sent), lengthVerified: true)))
            case .fail(let error): return finish(.failure(error))
            }
        }
        finish(.success(TransportSummary(bodyBytes: Int64(sent), lengthVerified: true)))
    }

    private func finish(_ result: Result<TransportSummary, DownloadError>) {
        guard !isOver else { return }
        isOver = true
        handler.transportDidFinish(result)
        onEnd(self)
    }
}
