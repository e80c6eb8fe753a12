import Dispatch
import FKMiddleware

extension Array where Element: Sendable {
    /// Transforms the elements on all processors and returns the results in order. It blocks until all are there. A
    /// single element is transformed in place.
    package func mappedInParallel<Value: Sendable>(_ transform: @Sendable (Element) -> Value) -> [Value] {
        guard count > 1 else { return map(transform) }
        let values = Locked([Value?](repeating: nil, count: count))
        DispatchQueue.concurrentPerform(iterations: count) { index in
            let value = transform(self[index])
            values.withLock { $0[index] = value }
        }
        return values.withLock { $0.compactMap(\.self) }
    }
}
