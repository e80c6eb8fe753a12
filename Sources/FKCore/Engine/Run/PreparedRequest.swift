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

    /// The request without everything that only the task's own servers may see.
    var withoutSecrets: PreparedRequest {
        guard case .full(let request) = form else { return self }
        var prepared = self
        let secret = secretHeaders.union(HeaderField.alwaysSecret)
        for name in request.allHTTPHeaderFields?.keys.map(\.self) ?? [] where secret.contains(name.lowercased()) {
            prepared.request.setValue(nil, forHTTPHeaderField: name)
        }
        return prepared
    }

    /// Runs the request chain. The first error ends it.
    ///
    /// The fields that a program sets count as secret. If it changes the origin of the URL, it has no say in which secrets
    /// of the task go there, so none do.
    ///
    /// - Parameter secret: the names of the task's own secret fields.
    static func run(
        _ chain: [any RequestMiddleware], _ request: URLRequest, _ context: TaskContext, secret taskSecret: [String]
    ) async -> Result<PreparedRequest, DownloadError> {
        var request = request.keepingFields
        var secret = Set(chain.flatMap(\.secretHeaders).map { $0.lowercased() })
        for middleware in chain {
            do {
                guard let program = middleware as? ProgramMiddleware else {
                    request = try await middleware.process(request, for: context)
                    continue
                }
                let origin = request.url.flatMap { URLOrigin($0.absoluteString) }
                let (changed, fields) = try await program.change(request, for: context)
                request = changed
                if changed.url.flatMap({ URLOrigin($0.absoluteString) }) != origin {
                    let own = Set(fields.map { $0.lowercased() })
                    let others = secret.union(taskSecret.map { $0.lowercased() }).union(HeaderField.alwaysSecret)
                    for name in others.subtracting(own) { request.setValue(nil, forHTTPHeaderField: name) }
                }
                secret.formUnion(fields.map { $0.lowercased() })
            } catch {
                return .failure(
                    DownloadError(
                        wrapping: error, code: .middleware, message: "The request middleware \(middleware.name) failed."
                    ))
            }
        }
        return .success(PreparedRequest(form: .full(request), secretHeaders: secret))
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
            status: status, httpVersion: httpVersion, fields: kept, url: URLMasking.mask(url), redirects: redirects)
        if !carried.isEmpty { head.carried = carried }
        if !via.isEmpty { head.via = via }
        return head
    }
}
