import FKMiddleware
import Foundation

/// How long a server has been silent, and how long it may be. A value type; times are nanoseconds of one monotonic
/// clock.
struct SilenceWatch {
    /// True if the body is not the file: that of a redirect, or one that explains a status. It has one second in
    /// total, and its bytes do not end a silence.
    var isAside = false
    /// The end of the handler's pause. A pause does not count as the server's silence.
    var pausedUntil: UInt64?

    private let stallTimeout: Double
    private let breakingBytes: Int
    /// nil until the request is sent: the time to connect is watched elsewhere.
    private var lastActivity: UInt64?
    /// The bytes of the body since then.
    private var newBytes = 0

    init(_ options: TransportOptions) {
        stallTimeout = options.allowedSilence
        breakingBytes = options.silenceBreakingBytes
    }

    /// Restarts the silence: the request was sent, its head has arrived, or a pause has ended.
    mutating func restart(_ now: UInt64) {
        lastActivity = now
        newBytes = 0
    }

    /// Counts received bytes of the body.
    mutating func heard(_ count: Int, _ now: UInt64) {
        guard !isAside else { return }
        newBytes += count
        if newBytes >= breakingBytes { restart(now) }
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

    /// The error for a server that was silent too long.
    ///
    /// - Parameter url: with secrets masked.
    func error(hasHead: Bool, url: String) -> DownloadError {
        let what = !hasHead ? Self.noAnswer : newBytes > 0 ? Self.tooLittle : Self.nothing
        return Self.error(what, allowedSilence, url: url)
    }

    static let noAnswer = "did not answer within"
    static let tooLittle = "sent hardly anything for"
    static let nothing = "sent nothing for"

    /// - Parameter what: what the server did, up to the time.
    static func error(_ what: String, _ seconds: Double, url: String) -> DownloadError {
        DownloadError(
            .timeout, "The server \(what) \(text(seconds)) s.", url: url, isRetryable: true, remedy: .waitLonger)
    }

    /// `60` and `2.5`, the same in every locale.
    static func text(_ seconds: Double) -> String {
        seconds == seconds.rounded() && abs(seconds) < 1e15 ? "\(Int64(seconds))" : "\(seconds)"
    }
}
