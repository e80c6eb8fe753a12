import FKMiddleware
import Foundation

/// A value of a `PooledMap`.
protocol PooledValue: BitwiseCopyable, Sendable {
    /// True if there is no value. Memory of zeros has none.
    var isNone: Bool { get }
}

/// A dictionary with task ids as keys and small values, for tasks that come in about the order in which they leave.
///
/// The values are in pages, in the order of the pool's numbers (`TaskIDPool`), and take nothing beside their own size. A page
/// without values goes back to the system, so a long queue gives back its memory while it drains. A page of 64 KiB takes only
/// the memory that its values touch. All operations are O(1) on average. A value type without locks of its own: it is changed by
/// one thread at a time.
struct PooledMap<Value: PooledValue>: @unchecked Sendable {
    // Sendable because the storage is changed only where this is its only reference.
    private var storage = PooledPages<Value> { $0.isNone }

    var count: Int { storage.count }
    var isEmpty: Bool { count == 0 }
    /// The bytes of the pages, and of one that is kept.
    var byteCount: Int { storage.byteCount }

    /// The pool's number of an id; nil if the map does not contain it.
    func number(of id: TaskID) -> Int32? {
        guard count > 0, let number = TaskIDPool.shared.number(of: id), storage.has(number) else { return nil }
        return number
    }

    /// The id of a number. The map must contain it.
    func id(of number: Int32) -> TaskID { TaskIDPool.shared.id(of: number) }

    /// The numbers of the ids, in ascending order.
    var numbers: some Sequence<Int32> { storage.numbers }

    /// The value of a number. The map must contain it to change it; otherwise this is nil.
    subscript(number: Int32) -> Value? {
        guard let value = storage.place(of: number)?.pointee, !value.isNone else { return nil }
        return value
    }

    /// The value of an id; nil if there is none.
    subscript(id: TaskID) -> Value? { number(of: id).flatMap { self[$0] } }

    /// Adds an id, or replaces its value, and returns its number.
    @discardableResult
    mutating func insert(_ value: Value, for id: TaskID) -> Int32 {
        own()
        let (number, isNew) = TaskIDPool.shared.hold(id) { storage.has($0) }
        if isNew { storage.add(value, for: number) } else { storage.place(of: number)?.pointee = value }
        return number
    }

    /// Changes the value of a number. The map must contain it, and the value must not become none.
    mutating func update(_ number: Int32, _ body: (inout Value) -> Void) {
        own()
        if let place = storage.place(of: number) { body(&place.pointee) }
    }

    /// Removes a number. The map must contain it.
    mutating func remove(_ number: Int32) {
        own()
        storage.remove(number)
        TaskIDPool.shared.release(number)
    }

    /// Copies the storage if another map has it as well.
    private mutating func own() {
        if !isKnownUniquelyReferenced(&storage) { storage = PooledPages(copying: storage) }
    }
}

/// The pages of a `PooledMap`.
///
/// The class itself asks nothing of its values: the runtime would look for the conformance in all that the program has, 0.1 ms for
/// each kind of value at each start.
private final class PooledPages<Value> {
    private struct Page {
        var values: UnsafeMutablePointer<Value>?
        var count: Int32 = 0
    }

    private var pages: [Page] = []
    /// The last page that lost its values, so that a task that comes and goes does not map a page each time.
    private var spare: UnsafeMutablePointer<Value>?
    private(set) var count = 0

    private static var pageBytes: Int { 1 << 16 }
    private static var pageBits: Int { 16 - MemoryLayout<Value>.stride.trailingZeroBitCount }
    private static var pageSize: Int { 1 << pageBits }

    /// `PooledValue.isNone`.
    private let isNone: @Sendable (Value) -> Bool

    init(isNone: @escaping @Sendable (Value) -> Bool) {
        assert(Self.pageBytes == Self.pageSize * MemoryLayout<Value>.stride)
        self.isNone = isNone
    }

    init(copying other: PooledPages) {
        isNone = other.isNone
        TaskIDPool.shared.hold(other.numbers)
        count = other.count
        pages = other.pages.map { page in
            guard let values = page.values else { return page }
            let copy = Self.map()
            copy.update(from: values, count: Self.pageSize)
            return Page(values: copy, count: page.count)
        }
    }

    deinit {
        TaskIDPool.shared.release(numbers)
        for page in pages { page.values.map(Self.unmap) }
        spare.map(Self.unmap)
    }

    /// The place of a number's value; nil if no page has it.
    func place(of number: Int32) -> UnsafeMutablePointer<Value>? {
        let page = Int(number) >> Self.pageBits
        guard page < pages.count, let values = pages[page].values else { return nil }
        return values + Int(number) & (Self.pageSize - 1)
    }

    func has(_ number: Int32) -> Bool { place(of: number).map { !isNone($0.pointee) } ?? false }

    /// Adds a value for a number that has none.
    func add(_ value: Value, for number: Int32) {
        let page = Int(number) >> Self.pageBits
        while page >= pages.count { pages.append(Page()) }
        let values = pages[page].values ?? popSpare() ?? Self.map()
        pages[page].values = values
        pages[page].count += 1
        values[Int(number) & (Self.pageSize - 1)] = value
        count += 1
    }

    func remove(_ number: Int32) {
        let page = Int(number) >> Self.pageBits
        guard let values = pages[page].values else { return }
        UnsafeMutableRawPointer(values + Int(number) & (Self.pageSize - 1))
            .initializeMemory(as: UInt8.self, repeating: 0, count: MemoryLayout<Value>.stride)
        count -= 1
        pages[page].count -= 1
        guard pages[page].count == 0 else { return }
        pages[page].values = nil
        if spare == nil { spare = values } else { Self.unmap(values) }
    }

    private func popSpare() -> UnsafeMutablePointer<Value>? {
        defer { spare = nil }
        return spare
    }

    /// The bytes of the pages.
    var byteCount: Int { (pages.count { $0.values != nil } + (spare == nil ? 0 : 1)) * Self.pageBytes }

    /// The numbers with a value.
    var numbers: some Sequence<Int32> {
        pages.indices.lazy.flatMap { [pages] page in
            let begin = Int32(page << Self.pageBits)
            return begin..<(pages[page].values == nil ? begin : begin + Int32(Self.pageSize))
        }.filter { self.has($0) }
    }

    /// Memory of zeros. Memory of `malloc` cannot be returned to the system while a later block is in use.
    private static func map() -> UnsafeMutablePointer<Value> {
        let memory = mmap(nil, pageBytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANON, -1, 0)
        guard let memory, memory != MAP_FAILED else { fatalError("There is no memory for the table of tasks.") }
        return memory.bindMemory(to: Value.self, capacity: pageSize)
    }

    private static func unmap(_ values: UnsafeMutablePointer<Value>) { munmap(values, pageBytes) }
}
