#if canImport(Glibc)
    import Glibc
#endif

/// Settings of the C library's allocator, for the whole process: a program's choice, not a library's.
enum Allocator {
    /// Keeps freed memory instead of giving it back at once. libcurl takes and frees a buffer of 512 KiB with each
    /// transfer, and each time the kernel would have to map and clear it anew: 2,000 small files take 169 ms
    /// instead of 189.
    static func keepFreedMemory() {
        #if canImport(Glibc)
            // malloc.h is not among the headers that Swift imports.
            guard let symbol = dlsym(nil, "mallopt") else { return }
            let mallopt = unsafeBitCast(symbol, to: (@convention(c) (Int32, Int32) -> Int32).self)
            let trimThreshold: Int32 = -1
            let mapThreshold: Int32 = -3
            _ = mallopt(mapThreshold, 32 << 20)
            _ = mallopt(trimThreshold, 32 << 20)
        #endif
    }
}
