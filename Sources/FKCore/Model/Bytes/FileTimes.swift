import Foundation

/// Times of a file, which the systems name differently.
extension stat {
    /// The time of the last write, in nanoseconds since 1970.
    package var modificationTime: Int64 {
        #if canImport(Darwin)
            st_mtimespec.nanoseconds
        #else
            st_mtim.nanoseconds
        #endif
    }

    /// The time of the last change of the content or the metadata, in nanoseconds since 1970.
    package var changeTime: Int64 {
        #if canImport(Darwin)
            st_ctimespec.nanoseconds
        #else
            st_ctim.nanoseconds
        #endif
    }
}

extension timespec {
    /// The time in nanoseconds. A file's time may be any number, so the sum may wrap around.
    package var nanoseconds: Int64 { Int64(tv_sec) &* 1_000_000_000 &+ Int64(tv_nsec) }
}
