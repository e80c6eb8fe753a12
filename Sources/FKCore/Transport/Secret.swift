import FKMiddleware
import Foundation

/// Something that only one origin may receive: the one it was given for.
///
/// A transport's request carries its secrets apart from its other fields. They are opened when the request is sent
/// (`TransportRequest.opened`), for the URL that is really asked: after middlewares, mirrors, and the addresses of lists, records and
/// `Link` fields. A redirect to another origin drops them all (`OutgoingRequest.following`).
///
/// | given by | origin |
/// | --- | --- |
/// | a header field, a login, a cookie file or a client's certificate of the task | that of the task's URL, or `TaskOptions.secretOrigin` |
/// | a field that a list gives for all addresses of an entry | that of each address |
/// | a middleware or a program that sets a field | that of the URL that it returns |
/// | the login host of the task | that of the task's URL, or `TaskOptions.secretOrigin`: its redirects alone may authenticate |
/// | the signer of `TaskOptions.awsSignature` | that of the task's URL, or `TaskOptions.secretOrigin` |
package struct Secret: Sendable, Hashable {
    /// The secret itself.
    package enum Value: Sendable, Hashable {
        /// A header field.
        case field(HeaderField)
        /// The login that `~/.netrc` has for the host.
        case netrc
        /// The cookies of a file in Netscape's form, by its path.
        case cookies(String)
        /// A client's certificate.
        case certificate(ClientCertificate)
        /// The login that `~/.netrc` has for a host to which a redirect leads, and the sessions that began there.
        case login(host: String, sessions: String?)
    }

    private let value: Value
    /// nil belongs to no origin.
    private let origin: URLOrigin?

    /// Creates a secret.
    ///
    /// - Parameter origin: the origin that may receive it; nil for none.
    package init(_ value: Value, for origin: URLOrigin?) {
        self.value = value
        self.origin = origin
    }

    /// The value, for a request to its own origin; nil for any other request. Another scheme or port is another origin.
    package func open(for target: URLOrigin?) -> Value? { origin != nil && origin == target ? value : nil }

    /// The value, for masking. Nothing is sent by it.
    var shape: Value { value }

    /// The name and value of a header field, for masking. Nothing is sent by it.
    package var field: HeaderField? { if case .field(let field) = value { field } else { nil } }
}

/// The secrets of a request that its URL may receive.
struct OpenedSecrets {
    var fields: [HeaderField] = []
    var usesNetrc = false
    var cookiePath: String?
    var certificate: ClientCertificate?
    var login: (host: String, sessions: String?)?

    /// Opens the secrets. It is the one caller of `Secret.open(for:)`.
    init(_ secrets: [Secret], for url: String) {
        guard !secrets.isEmpty else { return }
        let target = URLOrigin(url)
        for secret in secrets {
            switch secret.open(for: target) {
            case .field(let field): fields.append(field)
            case .netrc: usesNetrc = true
            case .cookies(let path): cookiePath = path
            case .certificate(let value): certificate = value
            case .login(let host, let sessions): login = (host, sessions)
            case nil: break
            }
        }
    }
}

extension TransportRequest {
    /// A request with its secrets apart, each with its origin.
    ///
    /// The secret fields of `form` belong to the origin of its URL. What is not yet a field belongs to `origin`: the login of
    /// `~/.netrc`, the cookies of a file, a client's certificate, and the signature, which is made for the URL that is really asked.
    ///
    /// - Parameters:
    ///   - secretHeaders: the lower-case names of secret fields beside those that are always secret.
    ///   - isStranger: true sends no secret at all; the default is false.
    ///   - signer: the provider of `AWSSignature`; nil signs nothing.
    ///   - keys: the credentials of the signature; nil, the default, for those of `AWSCredentials.usual()`.
    ///   - origin: the origin that the login, the cookies and the signer were given for; nil for none.
    /// - Throws: the errors of the credentials, or `.invalidArgument` for a field that cannot be sent.
    package init(
        _ form: RequestForm, secretHeaders: Set<String>, isStranger: Bool = false, signer: String?,
        keys: AWSCredentials? = nil, of origin: @autoclosure () -> URLOrigin?, _ options: TransportOptions,
        at date: Date, prefersHTTP1: Bool
    ) throws(DownloadError) {
        var (form, options, names) = (form, options, secretHeaders)
        var secrets: [Secret] = []
        if case .full(var request) = form {
            let target = URLOrigin(form.url)
            for (name, value) in request.allHTTPHeaderFields ?? [:]
            where HeaderField.isSecret(name) || names.contains(name.lowercased()) {
                if !isStranger { secrets.append(Secret(.field(HeaderField(name, value)), for: target)) }
                request.setValue(nil, forHTTPHeaderField: name)
            }
            form = .full(request)
        }
        if options.netrc || options.cookiePath != nil || options.clientCertificate != nil || signer != nil
            || options.loginHost != nil
        {
            let home = isStranger ? nil : origin()
            if options.netrc { secrets.append(Secret(.netrc, for: home)) }
            if let path = options.cookiePath { secrets.append(Secret(.cookies(path), for: home)) }
            if let certificate = options.clientCertificate {
                secrets.append(Secret(.certificate(certificate), for: home))
            }
            if let host = options.loginHost {
                secrets.append(Secret(.login(host: host, sessions: options.sessionPath), for: home))
            }
            (options.netrc, options.cookiePath, options.clientCertificate) = (false, nil, nil)
            (options.loginHost, options.sessionPath) = (nil, nil)
            if let signer, home != nil, URLOrigin(form.url) == home {
                let signature = try AWSSignature(signer)
                let keys = if let keys { keys } else { try AWSCredentials.usual() }
                let fields = signature.fields(for: form.urlRequest, keys, at: date)
                let signed = Set(fields.map { $0.name.lowercased() })
                secrets.removeAll { $0.field.map { signed.contains($0.name.lowercased()) } ?? false }
                secrets += fields.map { Secret(.field($0), for: home) }
                names.insert(signature.tokenField)
            }
        }
        self.init(form, secrets: secrets, secretHeaders: names, options: options, prefersHTTP1: prefersHTTP1)
        try form.checkFields()
        for field in secrets.compactMap(\.field) {
            guard let fault = field.fault else { continue }
            throw DownloadError(.invalidArgument, "The request was not sent: \(fault).", url: form.url.masked)
        }
    }
}
