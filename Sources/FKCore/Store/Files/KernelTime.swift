import CSystem

/// The time by which the kernel dates files.
package enum KernelTime {
    /// In nanoseconds since 1970. It is a few milliseconds behind the clock, and never later than that of a file created now.
    package static var now: Int64 { fk_file_time() }
}
