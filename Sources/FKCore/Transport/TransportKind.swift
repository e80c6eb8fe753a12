import FKMiddleware

/// The library that transfers the bytes. Docs/Transports.md compares them.
public enum TransportKind: String, Sendable, Hashable, Codable, CaseIterable {
    /// libcurl where it is compiled in (Linux, macOS), URLSession elsewhere. The default.
    case automatic
    /// libcurl.
    case curl
    /// Foundation's URLSession.
    case urlSession = "urlsession"

    /// Creates a transport of this kind. It uses no resources before its first transfer.
    ///
    /// - Throws: `.invalidArgument` for `.curl` if libcurl is not compiled in.
    package func makeTransport(_ networks: Networks = Networks()) throws(DownloadError) -> any Transport {
        switch self {
        #if canImport(CLibcurl)
            case .automatic, .curl: return CurlTransport()
            case .urlSession: return URLSessionTransport(networks: networks)
        #else
            case .automatic, .urlSession: return URLSessionTransport(networks: networks)
            case .curl:
                throw DownloadError(
                    .invalidArgument,
                    "libcurl is not part of this build: choose the transport automatic or urlsession.")
        #endif
        }
    }
}
