/// Compares the bytes that were requested again with the stored ones, as they arrive in pieces.
package struct TailComparison: Sendable {
    private let held: [UInt8]
    private var compared = 0

    /// Creates a comparison.
    ///
    /// - Parameter held: the last bytes of the part file, as many as `RangeAsk.overlap`.
    package init(held: [UInt8]) { self.held = held }

    /// True if all bytes were compared and equal.
    package var isDone: Bool { compared == held.count }

    /// The result after a piece.
    package enum Verdict: Sendable, Hashable {
        /// The whole buffer was equal, and more bytes are to be compared.
        case needsMore
        /// All bytes are equal. New bytes start at this offset of the buffer.
        case equal(newBytesAt: Int)
        /// The file on the server is another one. Start again from 0.
        case different
    }

    package mutating func feed(_ bytes: UnsafeRawBufferPointer) -> Verdict {
        let count = min(bytes.count, held.count - compared)
        guard bytes.prefix(count).elementsEqual(held[compared..<compared + count]) else { return .different }
        compared += count
        return isDone ? .equal(newBytesAt: count) : .needsMore
    }
}
