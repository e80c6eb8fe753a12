import FKMiddleware
import Foundation

/// A request after the request chain.
struct PreparedRequest: Sendable {
    var form: RequestForm
    var request: URLRequest {
        get { form.urlRequest }
        set { form = .full(newValue) }
    }
    /// The lower-case names of fields that are only sent to the first origin and never displayed.
    var secretHeaders: Set<String> = []

    /// Runs the request chain. The first error ends it. A middleware for one host is left out once another one has sent the request
    /// to another host.
    ///
    /// A field belongs to the origin of the request at which it was set (`RequestSecrets`). The fields that a program sets count as
    /// secret.
    ///
    /// - Parameter secret: the names of the task's own secret fields.
    static func run(
        _ chain: [MiddlewareChain<any RequestMiddleware>.Scoped], _ request: URLRequest, _ context: TaskContext,
        secret taskSecret: [String]
    ) async -> Result<PreparedRequest, DownloadError> {
        var request = request.keepingFields
        var secrets = RequestSecrets(of: request)
        var secret = Set(chain.flatMap(\.middleware.secretHeaders).map { $0.lowercased() })
        for scoped in chain where scoped.handles(request) {
            let middleware = scoped.middleware
            do {
                let before = request
                if let program = middleware as? ProgramMiddleware {
                    let (changed, fields) = try await program.change(request, for: context)
                    request = changed
                    secret.formUnion(fields.map { $0.lowercased() })
                } else {
                    request = try await middleware.process(request, for: context)
                }
                secrets.follow(from: before, to: &request)
            } catch {
                return .failure(
                    DownloadError(
                        wrapping: error, code: .middleware,
                        message: "The request middleware \"\(middleware.name)\" failed."))
            }
        }
        let names = secret.union(taskSecret.map { $0.lowercased() })
        secrets.drop(from: &request) { HeaderField.isSecret($0) || names.contains($0) }
        return .success(PreparedRequest(form: .full(request), secretHeaders: secret))
    }
}

/// The origins of a request's header fields and of its login, while the request chain changes it.
///
/// A middleware sets a field for the URL that it returns. A field that it leaves as it was keeps its origin. So a middleware or a
/// program that sends a request elsewhere takes no secret along that it does not name itself.
struct RequestSecrets {
    /// By lower-case name.
    private var origins: [String: URLOrigin?] = [:]

    /// The fields of a request are meant for its URL.
    init(of request: URLRequest) {
        let origin = Self.origin(of: request)
        for name in (request.allHTTPHeaderFields ?? [:]).keys { origins.updateValue(origin, forKey: name.lowercased()) }
    }

    /// Takes a step of the chain over. The login of a URL does not follow to another origin.
    mutating func follow(from before: URLRequest, to after: inout URLRequest) {
        let origin = Self.origin(of: after)
        if origin != Self.origin(of: before), let url = after.url?.absoluteString,
            let login = URLParts(url).userinfo, login == URLParts(before.url?.absoluteString ?? "").userinfo
        {
            let parts = URLParts(url)
            after.url = URL(string: parts.requestURL + (parts.fragment.map { "#\($0)" } ?? ""))
        }
        let former = Self.fields(of: before)
        for (name, value) in Self.fields(of: after) where former[name] != value {
            origins.updateValue(origin, forKey: name)
        }
    }

    /// Removes the secret fields that do not belong to the origin of the request's URL.
    func drop(from request: inout URLRequest, isSecret: (String) -> Bool) {
        let target = Self.origin(of: request)
        for name in (request.allHTTPHeaderFields ?? [:]).keys where isSecret(name.lowercased()) {
            let own = origins[name.lowercased()] ?? nil
            if own == nil || own != target { request.setValue(nil, forHTTPHeaderField: name) }
        }
    }

    private static func origin(of request: URLRequest) -> URLOrigin? {
        request.url.flatMap { URLOrigin($0.absoluteString) }
    }

    private static func fields(of request: URLRequest) -> [String: String] {
        var fields: [String: String] = [:]
        for (name, value) in request.allHTTPHeaderFields ?? [:] { fields[name.lowercased()] = value }
        return fields
    }
}

extension TransportRequest {
    /// The request of a task to one of its addresses, as the transport sends it. The fields of `prepared` are those that the address
    /// may receive.
    ///
    /// - Parameters:
    ///   - isStranger: true for an address that a server has offered, of another origin: it gets no secret at all.
    ///   - options: the downloader's options, overridden by the task's.
    /// - Throws: the errors of the credentials, or `.invalidArgument` for a field that cannot be sent.
    init(
        _ prepared: PreparedRequest, of task: TaskDescription, isStranger: Bool, _ options: TransportOptions,
        at date: Date,
        prefersHTTP1: Bool = false
    ) throws(DownloadError) {
        let marked = task.optionsBox?.value.secretHeaders ?? []
        try self.init(
            prepared.form, secretHeaders: prepared.secretHeaders.union(marked.map { $0.lowercased() }),
            isStranger: isStranger, signer: task.optionsBox?.value.awsSignature, of: task.secretOrigin, options,
            at: date,
            prefersHTTP1: prefersHTTP1)
    }
}

extension RangeAsk {
    /// Sets or removes `Range` and `If-Range` (RFC 9110 sections 14.2 and 13.1.5).
    package func apply(to request: inout URLRequest) {
        request.setValue(rangeHeader, forHTTPHeaderField: "Range")
        request.setValue(rangeHeader == nil ? nil : ifRange, forHTTPHeaderField: "If-Range")
    }
}

extension ResponseHead {
    /// True for the kept fields. By their lengths, so that most fields need no comparison.
    private static func isKept(_ name: String) -> Bool {
        switch name.utf8.count {
        case 4: name.caseInsensitiveEquals("ETag") || name.caseInsensitiveEquals("Date")
        case 12: name.caseInsensitiveEquals("Content-Type")
        case 13:
            name.caseInsensitiveEquals("Last-Modified") || name.caseInsensitiveEquals("Accept-Ranges")
                || name.caseInsensitiveEquals("Content-Range")
        case 14: name.caseInsensitiveEquals("Content-Length")
        case 16: name.caseInsensitiveEquals("Content-Encoding")
        case 19: name.caseInsensitiveEquals("Content-Disposition")
        default: false
        }
    }

    /// The head for an info file: only fields that describe the file, and the URL without signatures of request middlewares.
    var essentials: ResponseHead {
        var kept: [HeaderField] = []
        kept.reserveCapacity(8)
        for field in fields where Self.isKept(field.name) { kept.append(field) }
        var head = ResponseHead(
            status: status, httpVersion: httpVersion, fields: kept, url: url.masked, redirects: redirects)
        if !carried.isEmpty { head.carried = carried }
        if !via.isEmpty { head.via = via }
        return head
    }
}
