import FKEngine
import FKMiddleware

extension EngineAccess {
    /// Closes, and returns after every callback and download middleware has received all events; inside a middleware or a callback,
    /// which would wait for itself, it returns at once.
    func closeAndDrain() async {
        await close()
        guard !MiddlewareCall.isInside(identity, .chain), !MiddlewareCall.isInside(identity, .callback) else { return }
        await callbacks.drained()
    }
}
