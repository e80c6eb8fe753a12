#if canImport(CLibcurl)
    import Dispatch

    /// The time as the transport's thread sees it, read once per turn of its loop, and the earliest moment at which
    /// some transfer may need attention without anything arriving for it. Nanoseconds of a monotonic clock.
    final class CurlClock {
        private(set) var now = DispatchTime.now().uptimeNanoseconds
        private(set) var nextDeadline = UInt64.max

        func tick() { now = DispatchTime.now().uptimeNanoseconds }
        /// Makes sure that the loop looks at its transfers at `deadline` or before.
        func note(_ deadline: UInt64) { nextDeadline = min(nextDeadline, deadline) }
        func forgetDeadlines() { nextDeadline = .max }

        func after(seconds: Double) -> UInt64 {
            let (sum, overflow) = now.addingReportingOverflow(UInt64(min(max(seconds, 0), 1e9) * 1e9))
            return overflow ? .max : sum
        }
    }
#endif
