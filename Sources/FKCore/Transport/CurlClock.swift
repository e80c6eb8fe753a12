#if canImport(CLibcurl)
    import Dispatch

    /// The time of the transport's thread, read once per turn of its loop, and the earliest time at which a transfer
    /// may need attention without an event. Nanoseconds of a monotonic clock.
    final class CurlClock {
        private(set) var now = DispatchTime.now().uptimeNanoseconds
        private(set) var nextDeadline = UInt64.max

        func tick() { now = DispatchTime.now().uptimeNanoseconds }
        /// Makes the loop check its transfers at `deadline` or earlier.
        func record(_ deadline: UInt64) { nextDeadline = min(nextDeadline, deadline) }
        func forgetDeadlines() { nextDeadline = .max }

        func after(seconds: Double) -> UInt64 {
            let (sum, overflow) = now.addingReportingOverflow(UInt64(min(max(seconds, 0), 1e9) * 1e9))
            return overflow ? .max : sum
        }
    }
#endif
