import FKMiddleware
import Foundation

/// Masks the secrets of a request in a server's response. Error pages often quote the token, the login or the
/// signature that the server refused.
///
/// It runs on the transport's thread, beside all other transfers, so its work is limited. The text is the start of an
/// error page, at most 512 bytes, and the places of secrets have at most `maxPlaces` bytes. The slowest input found takes
/// 5 ms of a processor.
package struct EchoMasking: Sendable {
    let request: RequestForm
    /// The lower-case names of the secret header fields.
    let secretHeaders: Set<String>
    /// The fields that are secrets of one origin.
    private var secrets: [HeaderField] = []
    /// The files of secrets that libcurl reads.
    private var files = SecretFiles()
    /// The proxy as the options have it; nil takes that of the environment.
    private var proxy: String?

    /// Creates a masking of the secrets of a request.
    package init(request: URLRequest, secretHeaders: Set<String>) {
        self.init(.full(request), secretHeaders: secretHeaders)
    }

    /// Creates a masking of the secrets of a request.
    package init(_ request: RequestForm, secretHeaders: Set<String>) {
        self.request = request
        self.secretHeaders = secretHeaders
    }

    /// Creates a masking of all that a transport's request has, also of what is not sent to its URL.
    package init(_ request: TransportRequest) {
        self.init(request.form, secretHeaders: request.secretHeaders)
        secrets = request.secrets.compactMap(\.field)
        files = SecretFiles(request.secrets)
        proxy = request.options.proxy
    }

    /// The maximum length in bytes of all places of secrets together: both URLs and the secret header fields. Common
    /// servers accept no longer requests, but a redirect may lead to a URL of 300 KiB.
    static let maxPlaces = 8 << 10

    /// Masks a text. It becomes `***` as a whole if the places of secrets are longer than `maxPlaces`.
    ///
    /// - Parameters:
    ///   - text: the beginning of a page; it may end in the middle of a secret.
    ///   - url: the last URL of the transfer, because a redirect may contain a signature of its own.
    package func mask(_ text: String, url: String?) -> String {
        let urls = [request.url, url].compactMap(\.self)
        let fields = secretFields
        let stored = text.isEmpty ? [] : files.values(for: urls)
        guard (urls + fields + stored).reduce(0, { $0 + $1.utf8.count }) <= Self.maxPlaces else { return "***" }
        return SecretBook(Self.secrets(urls, fields).union(stored)).mask(text, isCut: true)
    }

    /// The error of a transfer with its texts masked, also libcurl's sentence about a proxy. Call it on no transport's thread.
    package func mask(_ error: DownloadError) -> DownloadError {
        let fields = request.fields.map { HeaderField($0, $1) } + secrets
        let values = HeaderField.secretValues(of: fields, marked: secretHeaders)
        let stored = files.values(for: [request.url])
        return SecretBook(values.union(SecretBook.values(ofURL: request.url)).union(proxySecrets).union(stored)).mask(
            error)
    }

    private var proxySecrets: Set<String> {
        ProxyAddress.text(option: proxy, url: request.url, environment: ProcessInfo.processInfo.environment)
            .map(SecretBook.values(ofProxy:)) ?? []
    }

    /// The values of the secret header fields.
    private var secretFields: [String] {
        request.fields.filter { name, _ in HeaderField.isSecret(name) || secretHeaders.contains(name.lowercased()) }
            .map(\.value) + secrets.map(\.value)
    }

    private static func secrets(_ urls: [String], _ fields: some Sequence<String>) -> Set<String> {
        var found: Set<String> = []
        for url in urls { found.formUnion(secrets(of: url)) }
        for value in fields { found.formUnion(SecretBook.values(ofField: value)) }
        return found
    }

    private static func secrets(of url: String) -> [String] {
        let parts = URLParts(url)
        var values = (parts.query ?? "").split(separator: "&").compactMap { parameter in
            parameter.firstIndex(of: "=").map { String(parameter[parameter.index(after: $0)...]) }
        }
        if let credentials = parts.credentials {
            let login = "\(credentials.user):\(credentials.password)"
            values += [credentials.user, credentials.password, Data(login.utf8).base64EncodedString()]
        }
        return values + values.compactMap(\.removingPercentEncoding)
    }
}
