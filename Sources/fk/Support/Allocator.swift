#if canImport(Glibc)
    import Glibc
#endif

/// Settings of the C library's allocator, for the whole process: a program's choice, not a library's.
enum Allocator {
    /// Keeps freed memory instead of giving it back at once. libcurl takes and frees a buffer of 512 KiB with each
    /// transfer, and each time the kernel would have to map and clear it anew: 2,000 small files take 169 ms
    /// instead of 189.
    ///
    /// Two pools instead of one for each thread: what one thread frees is otherwise of no use to the others, and 50,000
    /// files took 72 MB instead of 60, in the same time.
    static func keepFreedMemory() {
        #if canImport(Glibc)
            // malloc.h is not among the headers that Swift imports.
            guard let symbol = dlsym(nil, "mallopt") else { return }
            let mallopt = unsafeBitCast(symbol, to: (@convention(c) (Int32, Int32) -> Int32).self)
            let trimThreshold: Int32 = -1
            let mapThreshold: Int32 = -3
            let mostArenas: Int32 = -8
            _ = mallopt(mapThreshold, 32 << 20)
            _ = mallopt(trimThreshold, 32 << 20)
            _ = mallopt(mostArenas, 2)
        #endif
    }
}
