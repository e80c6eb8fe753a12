#if canImport(Glibc)
    import Glibc
#elseif canImport(Musl)
    import Musl
#else
    import Darwin
#endif

/// Short-lived memory straight from the C library. Swift's `allocate` asks for aligned memory on Linux whatever the
/// alignment is, which passes by the pools of the threads and takes the allocator's lock: of six times a small file, all
/// threads together, they waited for each other.
enum Heap {
    /// At least one byte, with unknown content, aligned for every type.
    static func take(_ count: Int) -> UnsafeMutableRawBufferPointer {
        guard let base = malloc(max(1, count)) else { fatalError("There is no memory for \(count) bytes.") }
        return UnsafeMutableRawBufferPointer(start: base, count: count)
    }

    static func giveBack(_ base: UnsafeMutableRawPointer?) { free(base) }

    static func with<Result>(_ count: Int, _ body: (UnsafeMutableRawBufferPointer) throws -> Result) rethrows -> Result
    {
        let memory = take(count)
        defer { giveBack(memory.baseAddress) }
        return try body(memory)
    }
}
