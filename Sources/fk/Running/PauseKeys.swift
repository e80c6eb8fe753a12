import FKCore
import FKMiddleware
import Foundation

/// Reads the key `p` while all that is left of a run is suspended. At other times typed keys stay for the shell.
final class PauseKeys: Sendable {
    private struct State {
        var source: (any DispatchSourceRead)?
        var perform: @Sendable () -> Void = {}
    }

    private let state = Locked(State())

    /// The work of the key.
    func onContinue(_ perform: @escaping @Sendable () -> Void) { state.withLock { $0.perform = perform } }

    /// Listens from a pause on until a task counts again.
    func record(_ event: RunSession.Event) {
        switch event {
        case .paused: open()
        case .state(let info) where !info.state.isSettled: close()
        default: break
        }
    }

    private func open() {
        guard TerminalGuard.readKeys(true) else { return }
        state.withLock { state in
            guard state.source == nil else { return }
            let source = DispatchSource.makeReadSource(fileDescriptor: 0, queue: .global())
            source.setEventHandler { [weak self] in
                var byte: UInt8 = 0
                let count = withUnsafeMutableBytes(of: &byte) { Glue.read(0, $0) }
                if count != 1 { self?.close() }
                if byte == UInt8(ascii: "p") { self?.state.withLock { $0.perform }() }
            }
            source.resume()
            state.source = source
        }
    }

    /// Leaves the keys to the shell again.
    func close() {
        state.withLock { state in
            guard let source = state.source else { return }
            source.cancel()
            state.source = nil
            _ = TerminalGuard.readKeys(false)
        }
    }
}
