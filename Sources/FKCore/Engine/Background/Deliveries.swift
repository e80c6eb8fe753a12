import Dispatch
import FKMiddleware
import Foundation

/// Performs requests of an engine by a `FileTransport`: a delivered file is played to the handler as a body, so that everything
/// behind a response is the same as with any transport. Pieces that nobody waits for are kept in the work path.
///
/// Safe from any thread. `DeliveryBook` decides.
package final class Deliveries: Sendable {
    private struct State {
        var book = DeliveryBook()
        var operations: [Int: DeliveryOperation] = [:]
        var lastNumber = 0
        /// True once the process is about to be suspended or ended: requests in flight outlive their attempts.
        var isLeaving = false
        /// Sessions that have reported all of their events.
        var delivered: Set<String> = []
        /// True while the application is in the background: tasks of any type are served.
        var servesAll = false
    }

    let session: BackgroundSession
    private let transport: any FileTransport
    private let files: DeliveredFiles
    private let workPath: WorkPath
    private let state = Locked(State())
    private let queue = DispatchQueue(label: "fk.deliveries")
    /// Called after each event.
    private let onChange = Locked<(@Sendable () -> Void)?>(nil)

    /// Creates it for a session; nil if this system has no such transport.
    init?(_ session: BackgroundSession, _ networks: Networks, in workPath: WorkPath) {
        guard let transport = session.makeTransport(session, networks) else { return nil }
        self.session = session
        self.transport = transport
        self.workPath = workPath
        files = DeliveredFiles(workPath)
    }

    /// Adopts the pieces of earlier processes.
    func adopt(onChange: @escaping @Sendable () -> Void) {
        self.onChange.withLock { $0 = onChange }
        let kept = files.all()
        state.withLock { $0.book.restore(kept) }
        transport.adopt { [weak self] in self?.receive($0) }
    }

    // MARK: Events of the transport

    private func receive(_ event: FileTransportEvent) {
        switch event {
        case .adopted(let keys): perform { $0.adopted(keys) }
        case .finished(let key, let head, let file): arrived(key, head, file)
        case .failed(let key, let error): perform { $0.failed(key, error) }
        case .allDelivered(let identifier): state.withLock { _ = $0.delivered.insert(identifier) }
        }
        onChange.withLock(\.self)?()
    }

    private func arrived(_ key: PieceKey, _ head: ResponseHead, _ file: String) {
        let arrival = DeliveryRules.arrival(
            isKnown: workPath.hasTask(key.task), isKept: state.withLock { $0.book.kept[key] != nil },
            exists: files.length(of: file) != nil)
        switch arrival {
        case .keep:
            do {
                let piece = try files.keep(file, of: key, head: head)
                perform { $0.finished(piece) }
            } catch {
                files.remove(key)
                let error = DownloadError(wrapping: error, code: .disk, message: "A delivered file could not be kept.")
                perform { $0.failed(key, error) }
            }
        case .discard: _ = try? FileIO.remove(file)
        case .fail:
            let error = DownloadError(
                .incompleteBody, "The system has removed a delivered file.", isRetryable: true)
            perform { $0.failed(key, error) }
        }
    }

    // MARK: Requests of attempts

    /// The reason why a request cannot be performed here; nil if it can.
    func refusal(of request: TransportRequest) -> DownloadError? { transport.refusal(of: request) }

    /// Performs a request, by a piece that is kept, in flight, or requested now.
    func start(_ request: TransportRequest, _ ask: DeliveryAsk, handler: any TransportHandler) -> DeliveryOperation {
        let operation = state.withLock { state in
            state.lastNumber += 1
            let operation = DeliveryOperation(state.lastNumber, ask.key.task, request, handler, self)
            state.operations[operation.number] = operation
            return operation
        }
        perform { $0.ask(operation.number, ask) }
        return operation
    }

    fileprivate func cancel(_ operation: DeliveryOperation) {
        let (isWaiting, isLeaving) = state.withLock {
            ($0.operations.removeValue(forKey: operation.number) != nil, $0.isLeaving)
        }
        perform { $0.withdraw(operation.number, of: operation.task, keepsFlying: isLeaving) }
        if isWaiting { queue.async { operation.fail(DeliveryPlayer.cancelled) } }
    }

    /// A response that was played has been handled.
    func settle(_ operation: DeliveryOperation, isUsed: Bool) {
        if let key = operation.played { perform { $0.settle(key, isUsed: isUsed) } }
    }

    private func perform(_ change: (inout DeliveryBook) -> [DeliveryBook.Action]) {
        // The lock keeps the actions of two changes in order. Nothing in it blocks or calls back.
        state.withLock { state in
            for action in change(&state.book) {
                switch action {
                case .start(let number, let key):
                    guard let operation = state.operations[number] else { continue }
                    transport.start(operation.request(for: key), piece: key)
                case .cancel(let keys): transport.cancel(keys)
                case .discard(let key): files.remove(key)
                case .play(let number, let piece, let skip):
                    state.operations.removeValue(forKey: number)?
                        .play(piece, skip: skip, path: files.bodyPath(piece.key), queue)
                case .fail(let number, let error):
                    guard let operation = state.operations.removeValue(forKey: number) else { continue }
                    queue.async { operation.fail(error) }
                }
            }
        }
    }

    // MARK: The engine

    /// Applies what the records of tasks say about their pieces.
    func apply(_ fates: [PieceKey: DeliveryRules.Fate]) { perform { $0.apply { fates[$0] ?? .expected } } }

    /// The state of a task has changed.
    func apply(_ record: TaskRecord) {
        guard record.state.isSettled else { return }
        perform { book in
            book.apply { $0.task == record.id ? DeliveryRules.fate(of: $0, for: record) : .expected }
        }
    }

    /// The pieces that are in flight or kept.
    var pieces: Set<PieceKey> { state.withLock { $0.book.flying.union($0.book.kept.keys) } }

    /// True if requests of a task with this type are performed here.
    func serves(_ type: DownloadType) -> Bool { type == .background || state.withLock(\.servesAll) }

    /// True once the application is in the background.
    func servesAll(_ isOn: Bool) { state.withLock { $0.servesAll = isOn } }

    /// True if a piece of the task is in flight or kept.
    func holds(_ task: TaskID) -> Bool { state.withLock { $0.book.holds(task) } }

    /// True if a piece that is in flight or kept has the first byte of a request.
    func hasAnswer(to ask: DeliveryAsk) -> Bool { state.withLock { $0.book.hasAnswer(to: ask) } }

    /// True if an attempt of the task waits for the system.
    func isWaiting(_ task: TaskID) -> Bool { state.withLock { $0.book.isWaiting(task) } }

    /// The sessions that have reported all of their events since the last call.
    func drainDelivered() -> Set<String> {
        state.withLock { state in
            defer { state.delivered = [] }
            return state.delivered
        }
    }

    /// Requests in flight outlive the attempts that end from now on, until this is false again.
    func leaves(_ isLeaving: Bool) { state.withLock { $0.isLeaving = isLeaving } }

    /// Ends the reports. Requests in flight continue.
    func close() {
        transport.leave()
        onChange.withLock { $0 = nil }
    }
}

/// A request of an attempt that a delivered piece answers.
final class DeliveryOperation: TransportOperation {
    let number: Int
    let task: TaskID
    private let base: TransportRequest
    private let handler: any TransportHandler
    private unowned let deliveries: Deliveries
    private let state = Locked<(key: PieceKey, player: DeliveryPlayer)?>(nil)

    init(
        _ number: Int, _ task: TaskID, _ request: TransportRequest, _ handler: any TransportHandler,
        _ deliveries: Deliveries
    ) {
        self.number = number
        self.task = task
        base = request
        self.handler = handler
        self.deliveries = deliveries
    }

    /// The piece that answers it; nil as long as none does.
    var played: PieceKey? { state.withLock { $0?.key } }

    fileprivate func request(for key: PieceKey) -> TransportRequest {
        var request = base
        request.urlRequest.setValue(key.rangeHeader, forHTTPHeaderField: "Range")
        return request
    }

    fileprivate func play(_ piece: Delivery, skip: Int64, path: String, _ queue: DispatchQueue) {
        let player = DeliveryPlayer(
            piece, skip: skip, path: path, handler: handler,
            queue: DispatchQueue(label: "fk.delivery", target: .global()))
        state.withLock { $0 = (piece.key, player) }
        player.start()
    }

    fileprivate func fail(_ error: DownloadError) { handler.transportDidFinish(.failure(error)) }

    func cancel() {
        deliveries.cancel(self)
        state.withLock { $0?.player }?.cancel()
    }

    func resume() { state.withLock { $0?.player }?.resume() }
}
