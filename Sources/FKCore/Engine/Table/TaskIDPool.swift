import FKMiddleware
import Foundation

/// One copy of each task id of this process, with a number for each. The queue, barrels, sums and resting tasks store the
/// numbers instead of the ids (`TaskIDTable`), because a million ids take 32 MB.
///
/// An id is removed when its last holder releases it; its number is then reused. All operations are O(1) on average. Safe to
/// use from any thread.
final class TaskIDPool: @unchecked Sendable {
    // Sendable because everything but the ids is touched only with `lock` held. An id is written before its number is handed out,
    // and not again while anybody holds the number, so `id(of:)` needs no lock.

    static let shared = TaskIDPool()

    private struct State {
        /// The numbers, placed by the hashes of their ids, or in the next free place (linear probing). -1 means free.
        var places: [Int32] = []
        /// How many hold each number.
        var holders: [UInt16] = []
        var freeNumbers: [Int32] = []
        var count = 0
    }

    /// The ids, in blocks that never move.
    private let blocks: UnsafeMutablePointer<UnsafeMutablePointer<TaskID>?>
    private let state = Locked(State())

    private static let blockBits = 12
    private static let blockSize = 1 << blockBits
    /// Room for 2^30 ids. Unused pages of this list take no memory.
    private static let blockCount = 1 << 18

    /// A random factor. Lists may come from others, and ids are computed from URLs, so collisions must not be predictable.
    private static let factor = UInt64.random(in: 0 ... .max) | 1

    init() {
        guard let memory = calloc(Self.blockCount, MemoryLayout<UnsafeMutablePointer<TaskID>?>.stride) else {
            fatalError("There is no memory for the ids of tasks.")
        }
        blocks = memory.bindMemory(to: UnsafeMutablePointer<TaskID>?.self, capacity: Self.blockCount)
    }

    deinit {
        for index in 0..<Self.blockCount { blocks[index]?.deallocate() }
        free(blocks)
    }

    /// The number of ids that are held.
    var count: Int { state.withLock(\.count) }

    /// The id of a number that the caller holds.
    func id(of number: Int32) -> TaskID {
        blocks[Int(number) >> Self.blockBits].unsafelyUnwrapped[Int(number) & (Self.blockSize - 1)]
    }

    /// Makes room for ids, so that a long list does not move its places over and over.
    ///
    /// - Parameter count: the number of ids that will be held, with those of now.
    func reserve(_ count: Int) {
        state.withLock { state in if 4 * count > 3 * state.places.count { grow(&state, for: count) } }
    }

    /// The number of an id; nil if nobody holds it.
    func number(of id: TaskID) -> Int32? {
        state.withLock { state in
            guard !state.places.isEmpty else { return nil }
            let found = state.places[place(of: id, state.places)]
            return found < 0 ? nil : found
        }
    }

    /// Holds an id, unless the caller does so already. Each hold ends with a call of `release`.
    ///
    /// - Parameter isHeld: true for a number that the caller holds.
    /// - Returns: the number, and true if it is held by this call.
    func hold(_ id: TaskID, unless isHeld: (Int32) -> Bool) -> (number: Int32, isNew: Bool) {
        state.withLock { state in
            if 4 * (state.count + 1) > 3 * state.places.count { grow(&state, for: state.count + 1) }
            let place = place(of: id, state.places)
            let found = state.places[place]
            if found >= 0 {
                if isHeld(found) { return (found, false) }
                // 65,535 holders of one id are more than there are tables.
                state.holders[Int(found)] += 1
                return (found, true)
            }
            let number = state.freeNumbers.popLast() ?? Int32(state.holders.count)
            if Int(number) == state.holders.count { state.holders.append(0) }
            state.holders[Int(number)] = 1
            put(id, at: number)
            state.places[place] = number
            state.count += 1
            return (number, true)
        }
    }

    /// Holds numbers once more.
    func hold(_ numbers: some Sequence<Int32>) {
        state.withLock { state in for number in numbers { state.holders[Int(number)] += 1 } }
    }

    /// Ends a hold.
    func release(_ number: Int32) { release(CollectionOfOne(number)) }

    /// Ends holds.
    func release(_ numbers: some Sequence<Int32>) {
        state.withLock { state in
            for number in numbers {
                state.holders[Int(number)] -= 1
                if state.holders[Int(number)] == 0 { remove(number, from: &state) }
            }
            // Without this a list of a million tasks would leave its room behind.
            if state.count == 0 { state = State() }
        }
    }

    // MARK: Inside

    private func put(_ id: TaskID, at number: Int32) {
        let block = Int(number) >> Self.blockBits
        // A block is stored once, before its first number is handed out: other threads read it without the lock.
        if blocks[block] == nil { blocks[block] = .allocate(capacity: Self.blockSize) }
        (blocks[block].unsafelyUnwrapped + Int(number) & (Self.blockSize - 1)).initialize(to: id)
    }

    private func remove(_ number: Int32, from state: inout State) {
        var hole = place(of: id(of: number), state.places)
        state.count -= 1
        state.freeNumbers.append(number)
        // Entries behind the hole that were displaced by it move up, because a search ends at the first free place.
        let mask = state.places.count - 1
        var next = hole
        while true {
            next = (next + 1) & mask
            let other = state.places[next]
            guard other >= 0 else { break }
            let wanted = home(of: id(of: other), state.places.count)
            if (next &- wanted) & mask >= (next &- hole) & mask {
                state.places[hole] = other
                hole = next
            }
        }
        state.places[hole] = -1
    }

    private func home(of id: TaskID, _ count: Int) -> Int {
        // The upper bits of the product, as many as the table has (Dietzfelbinger's multiply-shift).
        Int(truncatingIfNeeded: (id.leadingWord &* Self.factor) >> UInt64(1 + count.leadingZeroBitCount))
    }

    /// The place of the id, or the free place for it.
    private func place(of id: TaskID, _ places: [Int32]) -> Int {
        var place = home(of: id, places.count)
        while places[place] >= 0, self.id(of: places[place]) != id { place = (place + 1) & (places.count - 1) }
        return place
    }

    private func grow(_ state: inout State, for count: Int) {
        let old = state.places
        var size = max(16, old.count)
        while 4 * count > 3 * size { size *= 2 }
        state.places = Array(repeating: -1, count: size)
        for number in old where number >= 0 { state.places[place(of: id(of: number), state.places)] = number }
    }
}
