#if canImport(CLibcurl)
    import CLibcurl

    /// One easy handle of libcurl with the memory that must live as long as it: pooled, and used for one request after
    /// another. Not thread-safe; only the transport's thread touches it.
    final class CurlEasy {
        let pointer: UnsafeMutableRawPointer
        private let errorBuffer: UnsafeMutablePointer<CChar>
        private var headerList: UnsafeMutablePointer<curl_slist>?
        /// What is set beside the URL; nil when that cannot be said.
        var setup: Setup?

        /// Nil when libcurl has no memory.
        /// - Parameter share: keeps TLS sessions for all handles; must outlive this one.
        init?(share: UnsafeMutableRawPointer?) {
            guard let pointer = curl_easy_init() else { return nil }
            self.pointer = pointer
            errorBuffer = .allocate(capacity: Int(CURL_ERROR_SIZE))
            errorBuffer.pointee = 0
            set(CURLOPT_SHARE, share)
            // Cookies of redirects are kept and sent by libcurl's own rules. It keeps them through `reset()`; told of an
            // empty file with every request, it would also keep the name of the file each time.
            set(CURLOPT_COOKIEFILE, "")
            set(CURLOPT_COOKIELIST, "RELOAD")
        }

        deinit {
            curl_easy_cleanup(pointer)
            curl_slist_free_all(headerList)
            errorBuffer.deallocate()
        }

        /// Forgets every option of the last request; connections and TLS sessions are not the handle's and stay.
        func reset() {
            setup = nil
            curl_easy_reset(pointer)
            curl_slist_free_all(headerList)
            headerList = nil
            errorBuffer.pointee = 0
            set(CURLOPT_ERRORBUFFER, errorBuffer)
        }

        /// Cookies are one transfer's: the next one with this handle must not send them.
        func forgetCookies() { set(CURLOPT_COOKIELIST, "ALL") }

        func clearError() { errorBuffer.pointee = 0 }

        /// What libcurl says about the last failure; empty when it says nothing.
        var errorText: String { String(cString: errorBuffer) }

        func set(_ option: CURLoption, _ value: Int) { fk_easy_set_long(pointer, option, value) }
        func set(_ option: CURLoption, _ value: Bool) { fk_easy_set_long(pointer, option, value ? 1 : 0) }
        /// libcurl copies the text.
        func set(_ option: CURLoption, _ value: String?) {
            guard let value else { return _ = fk_easy_set_string(pointer, option, nil) }
            _ = value.withCString { fk_easy_set_string(pointer, option, $0) }
        }
        /// libcurl keeps the address: it must stay valid until the next `reset()`.
        func set(_ option: CURLoption, _ value: UnsafeMutableRawPointer?) {
            fk_easy_set_pointer(pointer, option, value)
        }

        /// - Returns: false when libcurl has no memory.
        func setHeaders(_ lines: [String]) -> Bool {
            for line in lines {
                guard let longer = curl_slist_append(headerList, line) else { return false }
                headerList = longer
            }
            fk_easy_set_list(pointer, CURLOPT_HTTPHEADER, headerList)
            return true
        }

        func long(_ info: CURLINFO) -> Int {
            var value = 0
            fk_easy_get_long(pointer, info, &value)
            return value
        }

        /// Makes a Location field absolute against the URL it came with (RFC 3986 section 5), and encodes what must not
        /// stand in a URL. Nil when the outcome is not a URL.
        static func resolve(_ location: String, against base: String) -> String? {
            guard let url = curl_url() else { return nil }
            defer { curl_url_cleanup(url) }
            let flags = UInt32(CURLU_URLENCODE | CURLU_NON_SUPPORT_SCHEME | CURLU_ALLOW_SPACE)
            guard curl_url_set(url, CURLUPART_URL, base, flags) == CURLUE_OK,
                curl_url_set(url, CURLUPART_URL, location, flags) == CURLUE_OK
            else { return nil }
            var text: UnsafeMutablePointer<CChar>?
            guard curl_url_get(url, CURLUPART_URL, &text, 0) == CURLUE_OK, let text else { return nil }
            defer { curl_free(text) }
            return String(cString: text)
        }
    }
#endif
