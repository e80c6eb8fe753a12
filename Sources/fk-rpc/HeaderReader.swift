import CLibwebsockets
import FKMiddleware

/// Reads the header fields of a request while libwebsockets has them.
struct HeaderReader {
    private let wsi: OpaquePointer

    init(_ wsi: OpaquePointer) { self.wsi = wsi }

    /// - Parameter path: the path, if the event has it; nil reads the one of the request line.
    func request(path: UnsafeRawBufferPointer?) -> WebRequest {
        var request = WebRequest()
        let methods: [(lws_token_indexes, String)] = [
            (WSI_TOKEN_GET_URI, "GET"), (WSI_TOKEN_POST_URI, "POST"), (WSI_TOKEN_OPTIONS_URI, "OPTIONS"),
            (WSI_TOKEN_HEAD_URI, "HEAD"), (WSI_TOKEN_PUT_URI, "PUT"), (WSI_TOKEN_DELETE_URI, "DELETE"),
            (WSI_TOKEN_PATCH_URI, "PATCH"),
        ]
        for (token, name) in methods {
            if let uri = text(token) {
                request.method = name
                request.path = uri
                break
            }
        }
        if let path, !path.isEmpty { request.path = String(decoding: path, as: UTF8.self) }
        request.host = text(WSI_TOKEN_HOST)
        request.origin = text(WSI_TOKEN_ORIGIN)
        request.requestedHeaders = text(WSI_TOKEN_HTTP_AC_REQUEST_HEADERS)
        request.contentLength = text(WSI_TOKEN_HTTP_CONTENT_LENGTH).flatMap { text in
            text.utf8.count < 16 && text.utf8.allSatisfy { (0x30...0x39).contains($0) } ? Int(text) : nil
        }
        request.isChunked = text(WSI_TOKEN_HTTP_TRANSFER_ENCODING) != nil
        if request.isChunked { request.contentLength = nil }
        request.isClosing = text(WSI_TOKEN_CONNECTION)?.lowercased() == "close"
        var index: Int32 = 0
        while let item = fragment(WSI_TOKEN_HTTP_URI_ARGS, index) {
            let parts = item.split(separator: "=", maxSplits: 1, omittingEmptySubsequences: false)
            request.query.append((String(parts[0]), parts.count > 1 ? String(parts[1]) : ""))
            index += 1
        }
        return request
    }

    private func text(_ token: lws_token_indexes) -> String? {
        let length = lws_hdr_total_length(wsi, token)
        guard length > 0 else { return nil }
        return read(Int(length)) { lws_hdr_copy(wsi, $0, $1, token) }
    }

    private func fragment(_ token: lws_token_indexes, _ index: Int32) -> String? {
        let length = lws_hdr_fragment_length(wsi, token, index)
        guard length > 0 else { return nil }
        return read(Int(length)) { lws_hdr_copy_fragment(wsi, $0, $1, token, index) }
    }

    private func read(_ length: Int, _ copy: (UnsafeMutablePointer<CChar>?, Int32) -> Int32) -> String? {
        var buffer = [CChar](repeating: 0, count: length + 1)
        let count = buffer.withUnsafeMutableBufferPointer { copy($0.baseAddress, Int32($0.count)) }
        guard count >= 0 else { return nil }
        return String(decoding: buffer.prefix(Int(count)).map { UInt8(bitPattern: $0) }, as: UTF8.self)
    }
}
