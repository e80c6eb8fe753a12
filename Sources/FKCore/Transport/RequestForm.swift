import FKMiddleware
import Foundation

/// What a request asks for. Most are a URL alone: Foundation's types are created only on demand, such as for a middleware.
package enum RequestForm: Sendable {
    /// A GET of a URL as `normalizedURL()` writes it, without fields.
    case url(String)
    /// Any request.
    case full(URLRequest)

    /// The request as middlewares know it.
    package var urlRequest: URLRequest {
        switch self {
        case .url(let text): URLRequest(url: URL(string: text) ?? URL(fileURLWithPath: "/"))
        case .full(let request): request
        }
    }

    /// The text of the URL; empty without one.
    var url: String {
        switch self {
        case .url(let text): text
        case .full(let request): request.url?.absoluteString ?? ""
        }
    }

    var fields: [String: String] {
        if case .full(let request) = self { request.allHTTPHeaderFields ?? [:] } else { [:] }
    }

    /// The same as `URLRequest.checkFields`.
    package func checkFields() throws(DownloadError) {
        if case .full(let request) = self { try request.checkFields() }
    }

    /// The URL of a request without fields, user, password and fragment, which needs no parsing; nil for any other.
    var plainURL: String? {
        guard case .url(let text) = self, text.hasPrefix("http://") || text.hasPrefix("https://") else { return nil }
        let isPlain = text.utf8.withContiguousStorageIfAvailable {
            memchr($0.baseAddress!, 0x40, $0.count) == nil && memchr($0.baseAddress!, 0x23, $0.count) == nil
        }
        return isPlain == true ? text : nil
    }
}
