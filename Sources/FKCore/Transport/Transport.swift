import FKMiddleware
import Foundation

#if canImport(FoundationNetworking)
    import FoundationNetworking
#endif

/// Moves bytes from a server to a handler. It knows nothing of tasks, files, retries or resuming.
///
/// ```text
/// start(request, handler) -> didReceive(head) -> didReceive(bytes)* -> didFinish(result)
/// ```
///
/// Rules for whoever writes one (the conformance suite in Tests checks them):
/// - `start` never blocks and never calls the handler before it returns.
/// - All calls for one transfer come in order and never at the same time; `didFinish` comes exactly once and last,
///   also after a `cancel()` (then with `.cancelled`) and after `shutdown()`.
/// - Redirects are followed inside (`RedirectRules`); the handler sees only the final response's head, once.
/// - The body of any status but 200, 203 and 206 only explains the status. It is waited for one second at most, however it
///   drips in; one that takes longer ends with `.timeout`. That of a redirect that is followed is never waited for longer.
/// - Bytes are the body without transfer coding and *with* content coding left as it is.
/// - A handler that is slow, or that answers `.pause`, holds the server back: memory for one transfer stays bounded.
public protocol Transport: Sendable {
    /// Begins a transfer.
    ///
    /// - Returns: the handle to cancel it or to resume it after `.pause`.
    func start(_ request: TransportRequest, handler: any TransportHandler) -> any TransportOperation

    /// Cancels what runs and releases threads and connections. The transport cannot be used afterwards.
    func shutdown()
}

/// One request as it goes on the wire, with everything the transport must know about it.
public struct TransportRequest: Sendable {
    /// Method, URL and header fields, after all request middlewares.
    public var urlRequest: URLRequest
    /// Header names, in lower case, that must not follow a redirect to another origin, besides
    /// `Authorization`, `Cookie` and `Proxy-Authorization`, which never do.
    public var secretHeaders: Set<String>
    /// How it travels: the downloader's options with the task's own on top.
    public var options: TransportOptions
    /// With `TransportOptions.HTTPVersion.automatic` a connection of its own and HTTP/1.1 would serve it best. A wish: a
    /// transport that has no choice may pass over it.
    public var prefersHTTP1: Bool

    /// For tests of a transport; the engine makes its own.
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

/// Called by the transport on a thread of its own; must not block for longer than a disk write takes.
public protocol TransportHandler: AnyObject, Sendable {
    /// The head of the final response has arrived: whatever its status is.
    func transport(didReceive head: ResponseHead) -> HeadVerdict
    /// A piece of the body. The buffer is only valid during the call.
    func transport(didReceive bytes: UnsafeRawBufferPointer) -> BodyVerdict
    /// The end. `.success` means that the message was complete as HTTP defines it (RFC 9112 section 8) or that the
    /// handler answered `.enough`.
    func transportDidFinish(_ result: Result<TransportSummary, DownloadError>)
}

/// What a handler wants after the head.
public enum HeadVerdict: Sendable {
    /// Go on with the body.
    case deliver
    /// End the transfer with this error; no body is delivered.
    case fail(DownloadError)
}

/// What a handler did with a piece of the body.
public enum BodyVerdict: Sendable {
    /// The whole buffer was taken.
    case consumed
    /// None of the buffer was taken: deliver the same bytes again after `resume()`, or by itself after so many
    /// seconds (> 0) when a time is given.
    case pause(seconds: Double?)
    /// What was wanted is there: end with success and drop the rest.
    case enough
    /// End the transfer with this error.
    case fail(DownloadError)
}

/// The running transfer. Both calls are safe from any thread and at any time, also after the end.
public protocol TransportOperation: AnyObject, Sendable {
    /// Ends the transfer; the handler gets `.cancelled`, unless it has had its end.
    func cancel()
    /// Goes on after `.pause`: the same bytes are delivered again. Harmless otherwise.
    func resume()
}

/// The status line and header fields of a response.
public struct ResponseHead: Sendable, Hashable, Codable {
    /// One header field line. Names keep the server's spelling.
    public struct Field: Sendable, Hashable, Codable {
        /// A token (RFC 9110 section 5.6.2).
        public var name: String
        /// Without blanks around it.
        public var value: String

        /// Takes both as they are.
        public init(_ name: String, _ value: String) {
            self.name = name
            self.value = value
        }
    }

    /// 100...999 (RFC 9110 section 15).
    public var status: Int
    /// `1.0`, `1.1`, `2` or `3`.
    public var httpVersion: String
    /// All header field lines, in order.
    public var fields: [Field]
    /// The URL that answered, after redirects, without userinfo and fragment.
    public var url: String
    /// How many redirects were followed to get here.
    public var redirects: Int

    /// A head as a transport makes it from an answer.
    public init(status: Int, httpVersion: String = "1.1", fields: [Field] = [], url: String, redirects: Int = 0) {
        self.status = status
        self.httpVersion = httpVersion
        self.fields = fields
        self.url = url
        self.redirects = redirects
    }

    /// The values of all fields of that name (compared without case), joined by `, ` (RFC 9110 section 5.3).
    public subscript(name: String) -> String? {
        let values = values(of: name)
        return values.isEmpty ? nil : values.joined(separator: ", ")
    }

    /// The value of the first field of that name.
    func first(_ name: String) -> String? { fields.first { $0.name.caseInsensitiveEquals(name) }?.value }

    /// The values of all fields of that name, in order.
    public func values(of name: String) -> [String] {
        fields.lazy.filter { $0.name.caseInsensitiveEquals(name) }.map(\.value)
    }

    /// The content coding that the body is in, nobody having asked for one: lower case, without `identity`, at most 100
    /// characters, and `gzip` for `x-gzip` (RFC 9110 section 8.4.1). Nil for the plain bytes. Servers also name what is no
    /// coding, such as `none`, `binary` or `UTF-8`.
    var contentCoding: String? {
        guard let value = self["Content-Encoding"] else { return nil }
        let codings = value.lowercased().split(separator: ",").map { $0.trimmingCharacters(in: .whitespaces) }
            .filter { !$0.isEmpty && $0 != "identity" }
            .map { ["x-gzip": "gzip", "x-compress": "compress"][$0] ?? $0 }
        return codings.isEmpty ? nil : String(codings.joined(separator: ", ").prefix(100))
    }

    /// Whether the body can be a file or a part of one (RFC 9110 sections 15.3.1, 15.3.4 and 15.3.7). Any other status has
    /// a body that only explains it.
    var carriesFile: Bool { status == 200 || status == 203 || status == 206 }

    /// The same as Foundation's type, for middlewares.
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
    /// ASCII comparison without case, for header names (RFC 9110 section 5.1).
    @inline(__always)
    func caseInsensitiveEquals(_ other: String) -> Bool {
        // Most have another length, and are not worth a call.
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

/// What is known once a transfer has ended well.
public struct TransportSummary: Sendable, Hashable {
    /// Body bytes handed to the handler.
    public var bodyBytes: Int64
    /// True when the end of the body was known from a length or a last chunk; false when the server just closed
    /// the connection (RFC 9112 section 6.3 rule 8).
    public var lengthVerified: Bool

    /// A summary as a transport makes it at the end.
    public init(bodyBytes: Int64, lengthVerified: Bool) {
        self.bodyBytes = bodyBytes
        self.lengthVerified = lengthVerified
    }
}
