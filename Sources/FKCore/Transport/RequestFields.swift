import FKMiddleware
import Foundation

extension URLRequest {
    /// Adds a header field. It keeps a value that cannot be sent, so that the request is refused instead of sent
    /// without it: Foundation's own method silently drops such a value.
    package mutating func add(_ field: HeaderField) {
        if field.value.isFieldValue {
            addValue(field.value, forHTTPHeaderField: field.name)
        } else {
            allHTTPHeaderFields = (allHTTPHeaderFields ?? [:]).merging([field.name: field.value]) { $1 }
        }
    }

    /// Checks all header fields.
    ///
    /// - Throws: `.invalidArgument` with the name of the field that cannot be sent, never with its value.
    package func checkFields() throws(DownloadError) {
        for (name, value) in allHTTPHeaderFields ?? [:] {
            guard let fault = HeaderField(name, value).fault else { continue }
            throw DownloadError(
                .invalidArgument, "The request was not sent: \(fault).", url: url.map { $0.absoluteString.masked })
        }
    }

    /// The same request for middlewares. It keeps values that cannot be sent (`add`). A request that a middleware
    /// creates itself is Foundation's own again.
    package var keepingFields: URLRequest {
        #if canImport(FoundationNetworking)
            KeepingRequest(self) as URLRequest
        #else
            self
        #endif
    }
}

#if canImport(FoundationNetworking)
    /// A request that keeps header values which Foundation would silently drop.
    private final class KeepingRequest: NSMutableURLRequest {
        convenience init(_ request: URLRequest) {
            self.init(url: request.url ?? URL(fileURLWithPath: "/"))
            absorb(request as NSURLRequest)
        }

        private func absorb(_ other: NSURLRequest) {
            url = other.url
            cachePolicy = other.cachePolicy
            timeoutInterval = other.timeoutInterval
            mainDocumentURL = other.mainDocumentURL
            networkServiceType = other.networkServiceType
            allowsCellularAccess = other.allowsCellularAccess
            httpMethod = other.httpMethod ?? "GET"
            allHTTPHeaderFields = other.allHTTPHeaderFields
            httpBody = other.httpBody
            if let stream = other.httpBodyStream { httpBodyStream = stream }
            httpShouldHandleCookies = other.httpShouldHandleCookies
        }

        override func setValue(_ value: String?, forHTTPHeaderField field: String) {
            guard let value, !value.isFieldValue else {
                return super.setValue(value, forHTTPHeaderField: field)
            }
            super.setValue(nil, forHTTPHeaderField: field)
            allHTTPHeaderFields = (allHTTPHeaderFields ?? [:]).merging([field: value]) { $1 }
        }

        override func addValue(_ value: String, forHTTPHeaderField field: String) {
            guard !value.isFieldValue else { return super.addValue(value, forHTTPHeaderField: field) }
            setValue(value, forHTTPHeaderField: field)
        }

        // `URLRequest` copies a shared request before it changes it.
        override func mutableCopy(with zone: NSZone? = nil) -> Any {
            let copy = KeepingRequest(url: url ?? URL(fileURLWithPath: "/"))
            copy.absorb(self)
            return copy
        }

        override func copy(with zone: NSZone? = nil) -> Any { mutableCopy(with: zone) }
    }
#endif
