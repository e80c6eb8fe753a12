import Foundation

extension DispatchQueue? {
    /// A callback that runs `body` on this queue; `body` itself if there is none, for the library's serial queue.
    func calling<Value: Sendable>(_ body: @escaping @Sendable (Value) -> Void) -> @Sendable (Value) -> Void {
        guard let queue = self else { return body }
        return { value in queue.async { body(value) } }
    }
}
