import Dispatch
import FKMiddleware

/// Work on all processors at once.
package enum Parallel {
    /// Transforms the elements on all processors and returns the results in order. It blocks until all are there. A
    /// single element is transformed in place.
    package static func map<Element: Sendable, Value: Sendable>(
        _ elements: [Element], _ transform: @Sendable (Element) -> Value
    ) -> [Value] {
        guard elements.count > 1 else { return elements.map(transform) }
        let values = Locked([Value?](repeating: nil, count: elements.count))
        DispatchQueue.concurrentPerform(iterations: elements.count) { index in
            let value = transform(elements[index])
            values.withLock { $0[index] = value }
        }
        return values.withLock { $0.compactMap(\.self) }
    }
}
