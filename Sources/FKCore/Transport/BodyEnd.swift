import FKMiddleware

/// How a body has ended, after libcurl has reported success. libcurl 7.88 with OpenSSL 3.0 reports it for ends that prove nothing.
struct BodyEnd {
    var meter = BodyMeter()
    var isHTTP2 = false
    /// The last result of `fk_easy_saw_close_notify`; 0 if the server has not sent one.
    var closeNotify: Int32 = -1
    /// True once the server has said that it will close an HTTP/2 connection without an error (RFC 9113 section 6.8).
    var sawGoAway = false

    /// nil until the head has arrived.
    var framing: BodyFraming? { meter.framing }
    /// True for a body of HTTP/2 without a length: only END_STREAM ends it.
    var isStream: Bool { framing == .delimited && isHTTP2 }

    enum Verdict: Hashable {
        /// The whole body; `lengthVerified` is false if nothing proves that it is whole.
        case complete(lengthVerified: Bool)
        /// It may be cut: the transfer fails and can be tried again.
        case cut(DownloadError.Code, String)
    }

    /// Decides.
    ///
    /// libcurl before 8.1 also reports success if a frame breaks the protocol of HTTP/2 (RFC 9113 section 5.4.1), and closes the
    /// connection. So a stream's end is proven if its connection is kept for other transfers. It is not known if the connection
    /// was closed after a GOAWAY without an error, or is in use by another transfer, and nothing tells whether it will be kept.
    ///
    /// - Parameters:
    ///   - isHEAD: true for an answer to HEAD, which has no body.
    ///   - keepsConnection: true if libcurl keeps the connection for other transfers.
    ///   - isShared: true if another running transfer uses the same connection.
    func verdict(
        isHEAD: Bool, keepsConnection: @autoclosure () -> Bool, isShared: @autoclosure () -> Bool
    ) -> Verdict {
        guard let framing else {
            return .cut(.connectionLost, "The server closed the connection in the middle of the response's head.")
        }
        if framing == .untilClose, closeNotify == 0 {
            return .cut(.incompleteBody, "The encrypted connection ended without a close notification.")
        }
        if isHEAD { return .complete(lengthVerified: true) }
        if meter.isCut { return .cut(.incompleteBody, "The body ended too early.") }
        guard isStream, !keepsConnection() else { return .complete(lengthVerified: framing != .untilClose) }
        return sawGoAway || isShared()
            ? .complete(lengthVerified: false)
            : .cut(.incompleteBody, "The HTTP/2 connection broke before the end of the body.")
    }
}
