import FKMiddleware
import Foundation

/// How long a server has been silent, and how long it may be. Pure: the times are nanoseconds of one monotonic clock.
struct SilenceWatch {
    /// The body is not the file: that of a redirect that is followed, or one that explains a status. It gets a second in
    /// all, and its bytes break no silence.
    var isAside = false
    /// The handler pauses until then: the silence is not the server's.
    var pausedUntil: UInt64?

    private let stallTimeout: Double
    private let breakingBytes: Int
    /// Nil until the request is on its way: the time to connect is watched elsewhere.
    private var lastActivity: UInt64?
    /// Bytes of the body since then.
    private var crumbs = 0

    init(_ options: TransportOptions) {
        stallTimeout = options.allowedSilence
        breakingBytes = options.silenceBreakingBytes
    }

    /// The request is sent, its head is there, or a pause has ended.
    mutating func restart(_ now: UInt64) {
        lastActivity = now
        crumbs = 0
    }

    /// Bytes of the body have come.
    mutating func heard(_ count: Int, _ now: UInt64) {
        guard !isAside else { return }
        crumbs += count
        if crumbs >= breakingBytes { restart(now) }
    }

    /// The end of the pause or of the allowed silence.
    var deadline: UInt64 {
        if let pausedUntil { return pausedUntil }
        guard let lastActivity else { return .max }
        let (sum, overflow) = lastActivity.addingReportingOverflow(UInt64(allowedSilence * 1e9))
        return overflow ? .max : sum
    }

    private var allowedSilence: Double { isAside ? Self.asideSeconds : stallTimeout }
    static let asideSeconds = 1.0

    /// - Parameter url: masked.
    func error(hasHead: Bool, url: String) -> DownloadError {
        let what = !hasHead ? "sent no complete head" : crumbs > 0 ? "sent hardly anything" : "sent nothing"
        return DownloadError(
            .timeout, "The server \(what) for \(allowedSilence.formatted()) s.", url: url, isRetryable: true)
    }
}
