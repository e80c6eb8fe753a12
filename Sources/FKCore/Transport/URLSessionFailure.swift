import FKMiddleware
import Foundation

/// The facts about a transfer that URLSession ended with an error.
///
/// FoundationNetworking has codes for only a few of libcurl's errors. Certificates, truncated bodies and malformed
/// responses are all `NSURLErrorUnknown`, and only libcurl's text tells them apart.
struct URLSessionFailure {
    var code: Int
    var text: String
    /// With secrets masked.
    var url: String
    /// True if the final head has arrived.
    var hasHead: Bool

    init(_ error: NSError, url: String, hasHead: Bool) {
        code = error.code
        text = error.localizedDescription
        self.url = url
        self.hasHead = hasHead
    }

    /// The error for the user, and whether a retry can help.
    var error: DownloadError {
        switch code {
        case NSURLErrorCannotFindHost, NSURLErrorDNSLookupFailed:
            return make(.nameLookup, "The host's name could not be looked up.", retry: true)
        case NSURLErrorCannotConnectToHost where !hasHead, NSURLErrorNotConnectedToInternet:
            return make(.connect, "The server could not be reached.", retry: true)
        case NSURLErrorTimedOut: return make(.timeout, "The connection took too long.", retry: true)
        case NSURLErrorBadURL: return make(.invalidURL, "The URL is not valid.", retry: false)
        case NSURLErrorUnsupportedURL where !text.contains("HTTP"):
            return make(.unsupportedScheme, "Only http and https are supported.", retry: false)
        case NSURLErrorClientCertificateRequired...NSURLErrorSecureConnectionFailed:
            return make(.tls, "A secure connection could not be made.", retry: false)
        case NSURLErrorNetworkConnectionLost: return make(.connectionLost, "The connection was lost.", retry: true)
        case NSURLErrorBadServerResponse where !hasHead:
            return make(.connectionLost, "The server closed the connection without an answer.", retry: true)
        default: return errorByText
        }
    }

    /// The error by libcurl's text.
    private var errorByText: DownloadError {
        // libcurl returns the same text for a header line that exceeds its limit.
        if !hasHead, text == "Out of memory" {
            return make(
                .protocolViolation, "The server's response is not valid HTTP: its header is too long.", retry: false)
        }
        for (words, code, message, retry) in Self.texts where words.contains(where: text.contains) {
            return make(code, message, retry: retry)
        }
        if ["SSL", "TLS", "certificate"].contains(where: text.contains) {
            let isNetwork = ["reset", "SYSCALL", "unexpected eof", "timed out"].contains(where: text.contains)
            if hasHead { return make(.connectionLost, "The connection was lost.", retry: true) }
            return make(.tls, "A secure connection could not be made.", retry: isNetwork)
        }
        return make(.connectionLost, "The transfer failed.", retry: hasHead)
    }

    private static let texts: [([String], DownloadError.Code, String, Bool)] = [
        (["transfer closed with"], .incompleteBody, "The body ended too early.", true),
        (
            ["chunk hex", "chunked-encoding", "chunked encoding"], .protocolViolation,
            "The body's chunks are malformed.", true
        ),
        (
            ["content encoding", "decompress", "gzip", "deflate", "inflate"], .encodedBody,
            "The body has a content coding that was not requested and cannot be decoded.", false
        ),
        (["proxy", "CONNECT tunnel"], .proxy, "The proxy could not be used.", true),
        (
            ["Failed to connect", "Couldn't connect", "Connection timed out"], .connect,
            "The server could not be reached.", true
        ),
        (
            ["Recv failure", "Send failure", "reset", "stream", "Empty reply"], .connectionLost,
            "The connection was lost.", true
        ),
        (
            [
                "HTTP/0.9", "Failed writing header", "header", "Invalid", "Unsupported HTTP", "Weird server reply",
                "Nul byte", "Header without colon",
            ], .protocolViolation, "The server's response is not valid HTTP.", false
        ),
    ]

    private func make(_ code: DownloadError.Code, _ message: String, retry: Bool) -> DownloadError {
        let isOnTheWay = !hasHead && [.connect, .timeout, .connectionLost, .tls].contains(code)
        let proxy = ProxyAddress.text(option: nil, url: url, environment: ProcessInfo.processInfo.environment)
        return DownloadError(
            code, message + (isOnTheWay ? ProxyAddress.note(proxy) : ""), url: url,
            underlying: text.isEmpty ? "NSURLError \(self.code)" : text, isRetryable: retry)
    }
}
