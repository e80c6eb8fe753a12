import FKEngine
import FKMiddleware

/// Makes the engine of this process, and keeps what such an engine shares with its `SharedEngine`: listeners, callbacks and
/// the thread. So a takeover changes only what tells the listeners.
struct EngineMaker: Sendable {
    let scope: Engine.Scope
    let chains: MiddlewareChains
    /// The number of tasks that stay in memory; nil for the usual one.
    let crowd: Int?
    let makeTransport: @Sendable () throws -> any Transport
    let callbacks = CallbackQueue()
    let observers = Observers()
    let thread = EngineThread(clock: SystemClock())

    /// - Parameter isChecked: true if the work path was opened just now. The default is false.
    /// - Returns: nil if another process owns the work path.
    func make(_ configure: Configure, isChecked: Bool = false) throws -> Engine? {
        do {
            return try Engine(
                configure: configure, scope: scope, transport: makeTransport(), chains: chains, callbacks: callbacks,
                clock: SystemClock(), crowd: crowd, isChecked: isChecked, shared: (thread, observers))
        } catch let error as DownloadError where error.code == .workPathBusy {
            return nil
        }
    }
}
