import FKMiddleware

/// What moves the bytes. Docs/Transports.md says what each can do.
public enum TransportKind: String, Sendable, Hashable, Codable, CaseIterable {
    /// libcurl where it is compiled in (Linux, macOS), else URLSession. The default.
    case automatic
    /// libcurl.
    case curl
    /// Foundation's URLSession.
    case urlSession = "urlsession"

    /// A transport of that kind; nothing of it is touched before its first transfer.
    ///
    /// - Throws: `.invalidArgument` for `.curl` where libcurl is not compiled in.
    package func makeTransport() throws(DownloadError) -> any Transport {
        switch self {
        #if canImport(CLibcurl)
            case .automatic, .curl: return CurlTransport()
            case .urlSession: return URLSessionTransport()
        #else
            case .automatic, .urlSession: return URLSessionTransport()
            case .curl:
                throw DownloadError(
                    .invalidArgument,
                    "libcurl is not part of this build: choose the transport automatic or urlsession.")
        #endif
        }
    }
}
