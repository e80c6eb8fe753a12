import Foundation

/// Settings of the C library's allocator for the whole process. A program may choose them, a library may not.
enum Allocator {
    /// Keeps freed memory instead of returning it to the kernel at once. libcurl allocates and frees a buffer of 512
    /// KiB for each transfer, and the kernel would map and clear it each time: 2,000 small files take 169 ms instead
    /// of 189.
    ///
    /// It uses two pools instead of one per thread, because memory that one thread frees is otherwise useless to the
    /// others: 50,000 files took 72 MB instead of 60, in the same time.
    static func keepFreedMemory() {
        #if canImport(Glibc)
            // malloc.h is missing in the headers that Swift imports.
            guard let symbol = dlsym(nil, "mallopt") else { return }
            let mallopt = unsafeBitCast(symbol, to: (@convention(c) (Int32, Int32) -> Int32).self)
            let trimThreshold: Int32 = -1
            let mapThreshold: Int32 = -3
            let mostArenas: Int32 = -8
            // Larger blocks are tables of long lists. When a table grows, its former block is returned to the kernel.
            _ = mallopt(mapThreshold, 2 << 20)
            _ = mallopt(trimThreshold, 16 << 20)
            _ = mallopt(mostArenas, 2)
        #endif
    }
}
