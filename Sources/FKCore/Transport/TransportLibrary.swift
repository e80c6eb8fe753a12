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
