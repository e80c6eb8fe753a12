/// A type with binary heaps whose elements know their positions.
protocol Heaps {
    associatedtype Heap
    func count(of heap: Heap) -> Int
    /// Compares the elements at two positions.
    func isBefore(_ a: Int, _ b: Int, in heap: Heap) -> Bool
    mutating func swap(_ a: Int, _ b: Int, in heap: Heap)
}

extension Heaps {
    /// Moves the element at a position to its place. All others have theirs.
    mutating func settle(_ start: Int, in heap: Heap) {
        var place = start
        while place > 0, isBefore(place, (place - 1) / 2, in: heap) {
            swap(place, (place - 1) / 2, in: heap)
            place = (place - 1) / 2
        }
        sink(place, in: heap)
    }

    /// Moves the element at a position down to its place. Those below have theirs.
    mutating func sink(_ start: Int, in heap: Heap) {
        var place = start
        let count = count(of: heap)
        while true {
            var best = place
            if 2 * place + 1 < count, isBefore(2 * place + 1, best, in: heap) { best = 2 * place + 1 }
            if 2 * place + 2 < count, isBefore(2 * place + 2, best, in: heap) { best = 2 * place + 2 }
            if best == place { return }
            swap(place, best, in: heap)
            place = best
        }
    }
}
