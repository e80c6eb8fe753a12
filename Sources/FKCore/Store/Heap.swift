#if canImport(Glibc)
    import Glibc
#elseif canImport(Musl)
    import Musl
#else
    import Darwin
#endif

/// Short-lived memory straight from the C library. Swift's `allocate` asks for aligned memory on Linux whatever the
/// alignment is, which passes by the threads' own pools and takes the allocator's lock: seven times for each small file.
enum Heap {
    /// So many bytes of unknown content, aligned for every type. Without memory the process ends, as with Swift's own.
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
