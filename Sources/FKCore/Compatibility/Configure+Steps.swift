import FKCore
import FKEngine
import FKMiddleware

extension Configure {
    /// FKDownloader's name for `progressInterval`: the number of steps of 0.2 s, 1 to 10, clamped; rounded for an interval
    /// that is no whole number of steps. The default is 5.
    public var distributeSpeed: Int {
        get { Int(min(max((progressInterval.inSeconds * 5).rounded(), 1), 10)) }
        set { progressInterval = .milliseconds(200 * min(max(newValue, 1), 10)) }
    }
}
