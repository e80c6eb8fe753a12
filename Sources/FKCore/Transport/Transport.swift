import FKMiddleware
import Foundation

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
/// - The transport follows redirects itself. The handler receives only the final response's head,
///   once.
/// - The body of a status other than 200, 203, 206, 207 and 209 to 299 only explains the status. It gets one second in total,
///   however slowly it arrives; a longer one ends with `.timeout`. The body of a redirect never gets longer either.
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

/// One request, with everything the transport must know about it. Copies share their values until one of them changes.
public struct TransportRequest: Sendable {
    /// The values of a request.
    private struct Fields: Sendable {
        var form: RequestForm
        var secrets: [Secret]
        var secretHeaders: Set<String>
        var options: TransportOptions
        var prefersHTTP1: Bool
        var task: TaskID?
    }

    /// Changed only while one request has it.
    private final class Storage: @unchecked Sendable {
        var fields: Fields
        init(_ fields: Fields) { self.fields = fields }
    }

    private var storage: Storage

    private var own: Fields {
        _read { yield storage.fields }
        _modify {
            if !isKnownUniquelyReferenced(&storage) { storage = Storage(storage.fields) }
            yield &storage.fields
        }
    }

    /// Method, URL and header fields, after all request middlewares. It has the secrets that its URL may receive, and no others.
    ///
    /// Setting it replaces the secret fields too.
    public var urlRequest: URLRequest {
        get {
            let opened = opened
            var request = own.form.urlRequest
            for field in opened.fields { request.add(field) }
            return request
        }
        set {
            own.form = .full(newValue)
            own.secrets.removeAll { $0.field != nil }
        }
    }
    /// The request without its secrets, as far as it is needed.
    var form: RequestForm { own.form }
    /// The secrets, each with the origin that may receive it.
    package var secrets: [Secret] { own.secrets }
    /// The secrets that the request's URL may receive.
    var opened: OpenedSecrets { OpenedSecrets(own.secrets, for: own.secrets.isEmpty ? "" : own.form.url) }
    /// The lower-case names of header fields that must not follow a redirect to another origin. The default is none.
    /// `Authorization`, `Cookie`, `Proxy-Authorization` and fields whose names look like a secret's, such as `X-Api-Key`, never
    /// follow such a redirect.
    public var secretHeaders: Set<String> {
        get { own.secretHeaders }
        set { own.secretHeaders = newValue }
    }
    /// The downloader's transport options, overridden by the task's own. `netrc`, `cookieFile` and `clientCertificate` are set only if
    /// the request's URL may receive the login, the cookies and the certificate.
    public var options: TransportOptions {
        _read {
            if own.secrets.isEmpty {
                yield own.options
            } else {
                var options = own.options
                let opened = opened
                if opened.usesNetrc { options.netrc = true }
                if let path = opened.cookiePath { options.cookiePath = path }
                if let certificate = opened.certificate { options.clientCertificate = certificate }
                if let login = opened.login { (options.loginHost, options.sessionPath) = login }
                yield options
            }
        }
        _modify { yield &own.options }
    }
    /// True if its own connection and HTTP/1.1 suit the request best, for `TransportOptions.HTTPVersion.automatic`.
    /// The default is false. A transport without that choice may ignore it.
    package var prefersHTTP1: Bool {
        get { own.prefersHTTP1 }
        set { own.prefersHTTP1 = newValue }
    }
    /// The task whose file is requested; nil for a request of no task. It says nothing to a server. Tests tell the requests of
    /// several tasks apart by it.
    package var task: TaskID? {
        get { own.task }
        set { own.task = newValue }
    }

    /// Creates a request whose fields and options are meant for its URL.
    package init(
        urlRequest: URLRequest, secretHeaders: Set<String> = [], options: TransportOptions = .init(),
        prefersHTTP1: Bool = false
    ) {
        self.init(
            .full(urlRequest), secretHeaders: secretHeaders, options: options, prefersHTTP1: prefersHTTP1)
    }

    /// Creates a request.
    ///
    /// - Parameter secrets: apart from the fields of `form`, which are meant for its URL; the default is none.
    package init(
        _ form: RequestForm, secrets: [Secret] = [], secretHeaders: Set<String>, options: TransportOptions,
        prefersHTTP1: Bool
    ) {
        storage = Storage(
            Fields(
                form: form, secrets: secrets, secretHeaders: secretHeaders, options: options,
                prefersHTTP1: prefersHTTP1))
    }
}

/// Receives the events of a transfer. The transport calls it on its own thread. A call must not block for longer than
/// a disk write takes.
public protocol TransportHandler: AnyObject, Sendable {
    /// The head of the final response has arrived, with any status.
    ///
    /// - Throws: the error that ends the transfer. No body is delivered then.
    func transport(didReceive head: ResponseHead) throws(DownloadError)
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

    /// Delivers a head. Returns the error that ends the transfer; nil for none.
    package func refusal(of head: ResponseHead) -> DownloadError? {
        do throws(DownloadError) {
            try transport(didReceive: head)
            return nil
        } catch {
            return error
        }
    }
}

/// The handler's decision about a piece of the body.
public enum BodyVerdict: Sendable {
    /// The handler has consumed the whole buffer.
    case consumed
    /// The handler has consumed none of the buffer. The transport delivers the same bytes again after `resume()`, or
    /// after this time (above 0) if it is given.
    case pause(Duration?)
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

/// The facts about a transfer that ended with success.
public struct TransportSummary: Sendable, Hashable {
    /// The body bytes that the handler received.
    package var bodyBytes: Int64
    /// True if a length, a last chunk or the end of an HTTP/2 stream marked the end of the body; false if the server only
    /// closed the connection (RFC 9112 section 6.3 rule 8), or if the transport cannot tell. The engine asks once more for
    /// the rest of a body of HTTP/2 without a marked end.
    package var lengthVerified: Bool

    /// Creates a summary. Transports call it at the end.
    public init(bodyBytes: Int64, lengthVerified: Bool) {
        self.bodyBytes = bodyBytes
        self.lengthVerified = lengthVerified
    }
}
