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

    /// Why transfers of this kind cannot be restricted to some networks; nil if they can, or if all are allowed.
    package func fault(_ networks: Networks) -> String? {
        guard networks != Networks() else { return nil }
        #if canImport(Darwin)
            #if canImport(CLibcurl)
                guard self != .urlSession else { return nil }
                return "networks are chosen, and libcurl uses all of them: set transportKind to .urlSession, or leave "
                    + "networks as it is"
            #else
                return nil
            #endif
        #else
            return "networks are chosen, and no transport of this system tells networks apart: leave networks as it is"
        #endif
    }
}
