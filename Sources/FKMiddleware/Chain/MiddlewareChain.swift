/// An ordered list of middlewares of one kind that can be changed while downloads run.
///
/// Order: priority, nearer 0 first; ties in registration order (the original left ties in random order).
/// A download that has begun walking the chain keeps the list it began with.
public final class MiddlewareChain<Element: Sendable>: Sendable {
    /// Names one registration, to remove it again.
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

    /// An empty chain.
    public init() {}

    /// Adds a middleware. Registering the same one twice runs it twice.
    ///
    /// - Parameter priority: values below 1 count as 1.
    /// - Returns: what `remove(_:)` takes.
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

    /// Removes a registration. Returns false when it was not there (any more).
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

    /// The middlewares in the order in which they run now.
    public var ordered: [Element] { state.withLock { $0.snapshot } }

    /// True when nothing is registered: the engine then skips the stage altogether.
    public var isEmpty: Bool { state.withLock { $0.snapshot.isEmpty } }
}
