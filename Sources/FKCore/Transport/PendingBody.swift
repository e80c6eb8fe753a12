import FKMiddleware
import Foundation

/// What arrives while a handler pauses: bytes, with the refused piece first, and the end. Confined to one thread at a time.
///
/// Its size is bounded by the bytes that libcurl delivers between two checks of its queue.
struct PendingBody {
    /// The end of a request, as Foundation reports it.
    typealias Completion = (response: HTTPURLResponse?, error: (any Error)?)

    /// The number of pauses so far. A timer uses it to recognise its own pause.
    private(set) var pauses = 0
    private var pieces: [Data] = []
    private var completion: Completion?

    var isEmpty: Bool { pieces.isEmpty }

    /// The handler pauses. Returns the number of the pause.
    mutating func pause() -> Int {
        pauses += 1
        return pauses
    }

    mutating func append(_ data: Data) { pieces.append(data) }

    /// Removes and returns the first piece; nil if there is none.
    mutating func popFirst() -> Data? { pieces.isEmpty ? nil : pieces.removeFirst() }

    /// Puts a refused piece back in front.
    mutating func putBack(_ data: Data) { pieces.insert(data, at: 0) }

    /// Drops all bytes.
    mutating func drop() { pieces.removeAll() }

    /// Keeps the end until the bytes are read.
    mutating func keep(_ completion: Completion) { self.completion = completion }

    /// Removes and returns the end; nil if it has not arrived.
    mutating func drainCompletion() -> Completion? { completion.take() }
}
