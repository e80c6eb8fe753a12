import Foundation

#if canImport(CLibcurl)
    import CLibcurl
#endif

/// The library that transfers the bytes on this system.
package enum TransportLibrary {
    /// Its name and version, with those of the libraries it uses, in its own words: `libcurl/7.88.1 OpenSSL/3.0.17
    /// zlib/1.2.13 …`.
    package static var description: String {
        #if canImport(CLibcurl)
            String(cString: curl_version())
        #else
            "URLSession"
        #endif
    }

    /// What this libcurl lacks for the options, as a clause; nil if nothing is lacking, and where it is not libcurl.
    package static func lack(for options: TransportOptions) -> String? {
        #if canImport(CLibcurl)
            if options.httpVersion == .http3, !has.http3 { return "libcurl was built without HTTP/3" }
            if options.dnsServers != nil, !has.servers {
                return "libcurl was built without c-ares, and can ask no name servers but the system's"
            }
            if options.dohURL != nil, !has.doh { return "libcurl was built without DNS over HTTPS" }
        #endif
        return nil
    }

    #if canImport(CLibcurl)
        /// libcurl's features that an option needs. It has no list with the last two.
        private static let has: (http3: Bool, servers: Bool, doh: Bool) = {
            let features = curl_version_info(CURLVERSION_FIRST)?.pointee.features ?? 0
            let http3 = Int(features) & Int(CURL_VERSION_HTTP3) != 0
            guard CurlTransport.isLibraryReady, let easy = curl_easy_init() else { return (http3, false, false) }
            defer { curl_easy_cleanup(easy) }
            return (
                http3, fk_easy_set_string(easy, CURLOPT_DNS_SERVERS, "127.0.0.1") == CURLE_OK,
                fk_easy_set_string(easy, CURLOPT_DOH_URL, "https://127.0.0.1/") == CURLE_OK
            )
        }()
    #endif

    /// Begins to call `read` with each line of `TransportTrace`, on the transport's thread. It must not block.
    package static func trace(_ read: @escaping @Sendable (String) -> Void) { TransportTrace.begin(read) }

    /// Starts to initialise the library on its own thread, for a program that will certainly need it. It saves 0.8 ms
    /// of the first request's time, most of it OpenSSL's. Further calls have no effect.
    package static func prepare() {
        #if canImport(CLibcurl)
            _ = isPreparing
        #endif
    }

    #if canImport(CLibcurl)
        private static let isPreparing: Void = Thread.detachNewThread { _ = CurlTransport.isLibraryReady }
    #endif
}
