#if canImport(CLibcurl)
    import CLibcurl
    import Foundation

    /// One easy handle of libcurl, with the memory that must outlive it. Handles are pooled and reused. Not
    /// thread-safe: only the transport's thread uses it.
    final class CurlEasy {
        let pointer: UnsafeMutableRawPointer
        /// It outlives the handle.
        private let share: CurlShare?
        private let errorBuffer: UnsafeMutablePointer<CChar>
        /// The error of a socket that could not be opened, and who decides about its address.
        private let opening: UnsafeMutablePointer<fk_socket_opening>
        /// The lists of texts that are set. libcurl does not copy them.
        private var lists: [UnsafeMutablePointer<curl_slist>] = []
        /// The options that are set besides the URL; nil if unknown.
        var setup: Setup?

        /// Creates a handle; nil if libcurl has no memory.
        ///
        /// - Parameter share: keeps TLS sessions for all handles.
        init?(share: CurlShare?) {
            guard let pointer = curl_easy_init() else { return nil }
            self.pointer = pointer
            errorBuffer = .allocate(capacity: Int(CURL_ERROR_SIZE))
            errorBuffer.pointee = 0
            opening = .allocate(capacity: 1)
            opening.initialize(to: fk_socket_opening())
            self.share = share
            set(CURLOPT_SHARE, share?.pointer)
            // Enables libcurl's cookie engine, for cookies that redirects set. `reset()` does not disable it. Setting
            // an empty file for every request would make libcurl store the file's name each time.
            set(CURLOPT_COOKIEFILE, "")
            set(CURLOPT_COOKIELIST, "RELOAD")
        }

        deinit {
            curl_easy_cleanup(pointer)
            lists.forEach(curl_slist_free_all)
            errorBuffer.deallocate()
            opening.deallocate()
        }

        /// Clears every option of the last request. Connections and TLS sessions do not belong to the handle and
        /// stay.
        func reset() {
            setup = nil
            curl_easy_reset(pointer)
            lists.forEach(curl_slist_free_all)
            lists = []
            clearError()
            set(CURLOPT_ERRORBUFFER, errorBuffer)
            opening.pointee.may = nil
            fk_easy_set_open_socket(pointer, opening)
        }

        /// Adds the cookies of lines in Netscape's form. `CURLOPT_COOKIEFILE` would stay set on the pooled handle, and be read
        /// again at each redirect, where it brings back what the server has deleted.
        func add(cookies: [String]) { for line in cookies { set(CURLOPT_COOKIELIST, line) } }

        /// The cookies of the transfer, as lines in Netscape's form.
        var cookies: [String] {
            var list: UnsafeMutablePointer<curl_slist>?
            guard fk_easy_get_list(pointer, CURLINFO_COOKIELIST, &list) == CURLE_OK else { return [] }
            defer { curl_slist_free_all(list) }
            var lines: [String] = []
            var node = list
            while let item = node {
                lines.append(String(cString: item.pointee.data))
                node = item.pointee.next
            }
            return lines
        }

        /// Removes the cookies of one transfer, so that the next one with this handle does not send them.
        func forgetCookies() { set(CURLOPT_COOKIELIST, "ALL") }

        func clearError() {
            errorBuffer.pointee = 0
            opening.pointee.error = 0
        }

        /// Asks before a socket is opened. It stays until the next `reset()`.
        func askBeforeConnecting(
            _ may: @escaping @convention(c) (UnsafeMutableRawPointer?, UnsafePointer<sockaddr>?) -> Int32,
            _ context: UnsafeMutableRawPointer
        ) {
            opening.pointee.may = may
            opening.pointee.context = context
        }

        /// The socket of a new connection; nil if it is not known.
        func openedSocket(atLocalPort port: Int) -> Int32? {
            let socket = fk_opened_socket(opening, Int32(truncatingIfNeeded: port))
            return socket < 0 ? nil : socket
        }

        /// False for a libcurl before 7.80, which does not tell when it sends a request.
        static let announcesRequests: Bool = {
            guard let easy = curl_easy_init() else { return true }
            defer { curl_easy_cleanup(easy) }
            return fk_easy_set_request_callback(easy, nil) == CURLE_OK
        }()

        /// True if the process had no descriptor for a socket, or has none now: a name lookup and the reading of a
        /// certificate file then fail without a reason.
        var lacksDescriptor: Bool {
            if [EMFILE, ENFILE].contains(opening.pointee.error) { return true }
            let probe = open("/dev/null", O_RDONLY | O_CLOEXEC)
            guard probe >= 0 else { return [EMFILE, ENFILE].contains(errno) }
            close(probe)
            return false
        }

        /// libcurl's text for the last failure; may be empty.
        var errorText: String { String(cString: errorBuffer) }

        func set(_ option: CURLoption, _ value: Int) { fk_easy_set_long(pointer, option, value) }
        func set(_ option: CURLoption, _ value: Bool) { fk_easy_set_long(pointer, option, value ? 1 : 0) }
        /// Sets a text option. libcurl copies the text.
        func set(_ option: CURLoption, _ value: String?) {
            guard let value else { return _ = fk_easy_set_string(pointer, option, nil) }
            _ = value.withCString { fk_easy_set_string(pointer, option, $0) }
        }
        /// Sets a pointer option. libcurl keeps the address, which must stay valid until the next `reset()`.
        func set(_ option: CURLoption, _ value: UnsafeMutableRawPointer?) {
            fk_easy_set_pointer(pointer, option, value)
        }

        /// Sets an option that is a list of texts, such as the header lines. It stays until the next `reset()`.
        ///
        /// - Returns: false if libcurl has no memory.
        func setList(_ option: CURLoption, _ lines: [String]) -> Bool {
            var list: UnsafeMutablePointer<curl_slist>?
            for line in lines {
                guard let longer = curl_slist_append(list, line) else {
                    curl_slist_free_all(list)
                    return false
                }
                list = longer
            }
            if let list { lists.append(list) }
            fk_easy_set_list(pointer, option, list)
            return true
        }

        func long(_ info: CURLINFO) -> Int {
            var value = 0
            fk_easy_get_long(pointer, info, &value)
            return value
        }

        func text(_ info: CURLINFO) -> String? {
            var text: UnsafeMutablePointer<CChar>?
            fk_easy_get_string(pointer, info, &text)
            return text.map { String(cString: $0) }
        }

        /// Resolves a Location field against the URL of its response (RFC 3986 section 5), and percent-encodes
        /// characters that URLs must not contain. nil if the result is not a URL.
        static func resolve(_ location: String, against base: String) -> String? {
            guard let url = curl_url() else { return nil }
            defer { curl_url_cleanup(url) }
            let flags = UInt32(CURLU_URLENCODE | CURLU_NON_SUPPORT_SCHEME | CURLU_ALLOW_SPACE)
            guard curl_url_set(url, CURLUPART_URL, base, flags) == CURLUE_OK else { return nil }
            // libcurl 7.88 drops the path if there is only a fragment.
            if location.utf8.first != UInt8(ascii: "#") {
                guard curl_url_set(url, CURLUPART_URL, location, flags) == CURLUE_OK else { return nil }
            }
            var text: UnsafeMutablePointer<CChar>?
            guard curl_url_get(url, CURLUPART_URL, &text, 0) == CURLUE_OK, let text else { return nil }
            defer { curl_free(text) }
            return String(cString: text)
        }
    }
#endif
