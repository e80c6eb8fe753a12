import FKMiddleware
import Foundation

#if canImport(FoundationNetworking)
    import FoundationNetworking
#endif

/// Transfers bytes from a server to a handler. It knows nothing about tasks, files, retries or resuming.
///
/// ```text
/// start(request, handler) -> didReceive(head) -> (didReceive(bytes)* [-> willWait])* -> didFinish(result)
/// ```
///
/// Requirements for implementations (the conformance suite in Tests checks them):
/// - `start` never blocks and never calls the handler before it returns.
/// - All calls for one transfer come in order and never concurrently. `didFinish` comes exactly once and last, also
///   after `cancel()` (then with `.cancelled`) and after `shutdown()`.
/// - The transport follows redirects itself (`RedirectRules`). The handler receives only the final response's head,
///   once.
/// - The body of a status other than 200, 203 and 206 only explains the status. It gets one second in total, however
///   slowly it arrives; a longer one ends with `.timeout`. The body of a redirect never gets longer either.
/// - The handler receives the body without transfer coding and with its content coding unchanged.
/// - A handler that is slow or returns `.pause` slows the server down: memory for one transfer stays bounded.
public protocol Transport: Sendable {
    /// Starts a transfer. Safe to call from any thread.
    ///
    /// - Returns: the operation, to cancel the transfer or resume it after `.pause`.
    func start(_ request: TransportRequest, handler: any TransportHandler) -> any TransportOperation

    /// Cancels all transfers and releases threads and connections. The transport cannot be used afterwards.
    func shutdown()
}

/// One request, with everything the transport must know about it.
public struct TransportRequest: Sendable {
    /// Method, URL and header fields, after all request middlewares.
    public var urlRequest: URLRequest
    /// The lower-case names of header fields that must not follow a redirect to another origin. The default is none.
    /// `Authorization`, `Cookie` and `Proxy-Authorization` never follow such a redirect.
    public var secretHeaders: Set<String>
    /// The downloader's transport options, overridden by the task's own.
    public var options: TransportOptions
    /// True if its own connection and HTTP/1.1 suit the request best, for `TransportOptions.HTTPVersion.automatic`.
    /// The default is false. A transport without that choice may ignore it.
    public var prefersHTTP1: Bool

    /// Creates a request for tests of a transport. The engine creates its own.
    public init(
        urlRequest: URLRequest, secretHeaders: Set<String> = [], options: TransportOptions = .init(),
        prefersHTTP1: Bool = false
    ) {
        self.urlRequest = urlRequest
        self.secretHeaders = secretHeaders
        self.options = options
        self.prefersHTTP1 = prefersHTTP1
    }
}

/// Receives the events of a transfer. The transport calls it on its own thread. A call must not block for longer than
/// a disk write takes.
public protocol TransportHandler: AnyObject, Sendable {
    /// The head of the final response has arrived, with any status.
    func transport(didReceive head: ResponseHead) -> HeadVerdict
    /// A piece of the body has arrived. The buffer is valid only during the call.
    func transport(didReceive bytes: UnsafeRawBufferPointer) -> BodyVerdict
    /// All bytes that the transport has read were delivered, and it now waits for more. A handler may keep bytes to itself
    /// until then. A transport need not call it; one that calls it once for a transfer calls it before each of its waits.
    /// The default implementation does nothing.
    ///
    /// - Throws: the error that ends the transfer.
    func transportWillWait() throws(DownloadError)
    /// The transfer has ended. `.success` means that the message was complete as HTTP defines it (RFC 9112 section
    /// 8), or that the handler returned `.enough`.
    func transportDidFinish(_ result: Result<TransportSummary, DownloadError>)
}

extension TransportHandler {
    /// Does nothing.
    public func transportWillWait() throws(DownloadError) {}
}

/// The handler's decision about a head.
public enum HeadVerdict: Sendable {
    /// Deliver the body.
    case deliver
    /// End the transfer with this error. No body is delivered.
    case fail(DownloadError)
}

/// The handler's decision about a piece of the body.
public enum BodyVerdict: Sendable {
    /// The handler has consumed the whole buffer.
    case consumed
    /// The handler has consumed none of the buffer. The transport delivers the same bytes again after `resume()`, or
    /// after this many seconds (above 0) if they are given.
    case pause(seconds: Double?)
    /// The handler has all the bytes it needs: end the transfer with success and discard the rest.
    case enough
    /// End the transfer with this error.
    case fail(DownloadError)
}

/// A running transfer. Both functions are safe to call from any thread at any time, also after the end.
public protocol TransportOperation: AnyObject, Sendable {
    /// Ends the transfer. The handler receives `.cancelled`, unless the transfer has ended already.
    func cancel()
    /// Continues after `.pause`: the same bytes are delivered again. Otherwise it has no effect.
    func resume()
}

/// The status line and header fields of a response.
public struct ResponseHead: Sendable, Hashable, Codable {
    /// One header field line, with the name as the server spelled it.
    public struct Field: Sendable, Hashable, Codable {
        /// The field name, a token (RFC 9110 section 5.6.2).
        public var name: String
        /// The field value, without surrounding whitespace.
        public var value: String

        /// Creates a field. It checks neither value.
        public init(_ name: String, _ value: String) {
            self.name = name
            self.value = value
        }
    }

    /// The status code, 100 to 999 (RFC 9110 section 15).
    public var status: Int
    /// The HTTP version: `1.0`, `1.1`, `2` or `3`.
    public var httpVersion: String
    /// All header field lines, in order.
    public var fields: [Field]
    /// The URL that answered after redirects, without userinfo and fragment.
    public var url: String
    /// The number of redirects followed.
    public var redirects: Int
    /// Fields of the redirects that describe the file: `Link`, `X-Linked-ETag` and `X-Linked-Size`. They are not stored.
    package var carried: [Field] = []

    private enum CodingKeys: String, CodingKey {
        case status, httpVersion, fields, url, redirects
    }

    /// Creates a head. Transports call it for each final response.
    public init(status: Int, httpVersion: String = "1.1", fields: [Field] = [], url: String, redirects: Int = 0) {
        self.status = status
        self.httpVersion = httpVersion
        self.fields = fields
        self.url = url
        self.redirects = redirects
    }

    /// The values of all fields of that name (compared without case), joined by `, ` (RFC 9110 section 5.3); nil if
    /// there is none.
    public subscript(name: String) -> String? {
        let values = values(of: name)
        return values.isEmpty ? nil : values.joined(separator: ", ")
    }

    /// The value of the first field of that name; nil if there is none.
    func first(_ name: String) -> String? { fields.first { $0.name.caseInsensitiveEquals(name) }?.value }

    /// The values of all fields of that name (compared without case), in order.
    public func values(of name: String) -> [String] {
        fields.lazy.filter { $0.name.caseInsensitiveEquals(name) }.map(\.value)
    }

    /// The content coding of a body that should have none: in lower case, without `identity`, at most 100 characters,
    /// and `gzip` for `x-gzip` (RFC 9110 section 8.4.1). nil for plain bytes. Some servers send values that are not
    /// codings, such as `none`, `binary` or `UTF-8`.
    var contentCoding: String? {
        guard let value = self["Content-Encoding"] else { return nil }
        let codings = value.lowercased().split(separator: ",").map { $0.trimmingCharacters(in: .whitespaces) }
            .filter { !$0.isEmpty && $0 != "identity" }
            .map { ["x-gzip": "gzip", "x-compress": "compress"][$0] ?? $0 }
        return codings.isEmpty ? nil : String(codings.joined(separator: ", ").prefix(100))
    }

    /// True if the body can be a file or a part of one (RFC 9110 sections 15.3.1, 15.3.4 and 15.3.7). The body of any
    /// other status only explains it.
    var carriesFile: Bool { status == 200 || status == 203 || status == 206 }

    /// The head as Foundation's type, for middlewares; nil if Foundation cannot read the URL.
    public var httpURLResponse: HTTPURLResponse? {
        guard let url = URL(string: url) else { return nil }
        var headers: [String: String] = [:]
        for field in fields {
            headers[field.name] = headers[field.name].map { "\($0), \(field.value)" } ?? field.value
        }
        return HTTPURLResponse(url: url, statusCode: status, httpVersion: "HTTP/\(httpVersion)", headerFields: headers)
    }
}

extension String {
    /// Compares header names: ASCII letters without case (RFC 9110 section 5.1).
    @inline(__always)
    func caseInsensitiveEquals(_ other: String) -> Bool {
        // Most names differ in length, which needs no call.
        utf8.count == other.utf8.count && hasSameLetters(as: other)
    }

    private func hasSameLetters(as other: String) -> Bool {
        var one = self
        var other = other
        return one.withUTF8 { one in
            other.withUTF8 { other in
                zip(one, other).allSatisfy { $0 == $1 || $0 ^ $1 == 0x20 && (0x61...0x7a).contains($0 | 0x20) }
            }
        }
    }
}

/// The facts about a transfer that ended with success.
public struct TransportSummary: Sendable, Hashable {
    /// The body bytes that the handler received.
    public var bodyBytes: Int64
    /// True if a length, a last chunk or the end of an HTTP/2 stream marked the end of the body; false if the server only
    /// closed the connection (RFC 9112 section 6.3 rule 8), or if the transport cannot tell. The engine asks once more for
    /// the rest of a body of HTTP/2 without a marked end.
    public var lengthVerified: Bool

    /// Creates a summary. Transports call it at the end.
    public init(bodyBytes: Int64, lengthVerified: Bool) {
        self.bodyBytes = bodyBytes
        self.lengthVerified = lengthVerified
    }
}
