/// An ordered list of middlewares of one kind that can be changed while downloads run.
///
/// Middlewares run by priority, lowest first, and in registration order when priorities are equal (FKDownloader left
/// that order undefined). A task that has started on the chain keeps the list of that moment. All members are safe to
/// use from any thread.
public final class MiddlewareChain<Element: Sendable>: Sendable {
    /// Identifies one registration, for `remove(_:)`.
    public struct Registration: Sendable, Hashable {
        fileprivate let number: UInt64
    }

    private struct Entry {
        let priority: Int
        let number: UInt64
        let middleware: Element
    }

    private struct State {
        var nextNumber: UInt64 = 0
        var entries: [Entry] = []
        var snapshot: [Element] = []
    }

    private let state = Locked(State())

    /// Creates an empty chain.
    public init() {}

    /// Adds a middleware. A middleware that is registered twice runs twice.
    ///
    /// - Parameter priority: values below 1 count as 1.
    /// - Returns: the registration, for `remove(_:)`.
    @discardableResult
    public func register(_ middleware: Element, priority: Int) -> Registration {
        state.withLock { state in
            let entry = Entry(priority: max(1, priority), number: state.nextNumber, middleware: middleware)
            state.nextNumber += 1
            let index = state.entries.firstIndex { $0.priority > entry.priority } ?? state.entries.endIndex
            state.entries.insert(entry, at: index)
            state.snapshot = state.entries.map(\.middleware)
            return Registration(number: entry.number)
        }
    }

    /// Removes a registration. Returns false if it was removed before.
    @discardableResult
    public func remove(_ registration: Registration) -> Bool {
        state.withLock { state in
            guard let index = state.entries.firstIndex(where: { $0.number == registration.number }) else {
                return false
            }
            state.entries.remove(at: index)
            state.snapshot = state.entries.map(\.middleware)
            return true
        }
    }

    /// The middlewares in the order in which they currently run.
    public var ordered: [Element] { state.withLock { $0.snapshot } }

    /// True when nothing is registered. The engine then skips the stage.
    public var isEmpty: Bool { state.withLock { $0.snapshot.isEmpty } }
}
