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

    /// Creates a masking of the secrets of a request.
    package init(request: URLRequest, secretHeaders: Set<String>) {
        self.init(.full(request), secretHeaders: secretHeaders)
    }

    /// Creates a masking of the secrets of a request.
    package init(_ request: RequestForm, secretHeaders: Set<String>) {
        self.request = request
        self.secretHeaders = secretHeaders
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
        let fields = request.fields.filter { name, _ in
            let name = name.lowercased()
            return HeaderField.alwaysSecret.contains(name) || secretHeaders.contains(name)
        }.values
        guard (urls + fields).reduce(0, { $0 + $1.utf8.count }) <= Self.maxPlaces else { return "***" }
        let bytes = Array(text.utf8)
        // Each secret begins with one of these, if it occurs at all. Most do not, whatever their number and length.
        var beginnings: Set<UInt32> = []
        for index in bytes.indices.dropLast(Self.minLength - 1) { beginnings.insert(Self.beginning(bytes[index...])) }
        var hidden: [Range<Int>] = []
        for secret in Self.secrets(urls, fields) {
            // Longer than the text, only its beginning can be the text's end.
            let secret = Array(secret.utf8.prefix(bytes.count + 1))
            guard secret.count >= Self.minLength, beginnings.contains(Self.beginning(secret[...])) else { continue }
            Self.find(secret, in: bytes, &hidden)
        }
        guard !hidden.isEmpty else { return text }
        var masked: [UInt8] = []
        var end = 0
        for range in hidden.sorted(by: { $0.lowerBound < $1.lowerBound }) {
            // One secret may be a part of another.
            if range.lowerBound >= end {
                masked += bytes[end..<range.lowerBound]
                masked += "***".utf8
            }
            end = max(end, range.upperBound)
        }
        return String(decoding: masked + bytes[end...], as: UTF8.self)
    }

    private static func beginning(_ bytes: ArraySlice<UInt8>) -> UInt32 {
        bytes.prefix(minLength).reduce(0) { $0 << 8 | UInt32($1) }
    }

    /// Finds a secret and, at the end of the text, its beginning, in a time that is linear in both (Knuth, Morris, Pratt).
    private static func find(_ secret: [UInt8], in bytes: [UInt8], _ found: inout [Range<Int>]) {
        // The length of the longest beginning that each beginning also ends with.
        var borders = [0]
        for index in 1..<secret.count {
            var length = borders[index - 1]
            while length > 0, secret[index] != secret[length] { length = borders[length - 1] }
            borders.append(secret[index] == secret[length] ? length + 1 : 0)
        }
        var length = 0
        for (index, byte) in bytes.enumerated() {
            while length > 0, byte != secret[length] { length = borders[length - 1] }
            if byte == secret[length] { length += 1 }
            if length == secret.count {
                found.append(index + 1 - length..<index + 1)
                length = 0
            }
        }
        if length >= minLength { found.append(bytes.count - length..<bytes.count) }
    }

    private static func secrets(_ urls: [String], _ fields: some Sequence<String>) -> Set<String> {
        var found: Set<String> = []
        for url in urls { found.formUnion(secrets(of: url)) }
        for value in fields {
            found.insert(value)
            // The token without its scheme, and the value of a cookie without its name.
            found.formUnion(value.utf8.split { separators.contains($0) }.compactMap { String(Substring($0)) })
        }
        return found.filter { $0.utf8.count >= minLength && !schemes.contains($0.lowercased()) }
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

    private static let separators = Set(" ;,=".utf8)
    /// Shorter secrets occur by chance in other words.
    private static let minLength = 4
    private static let schemes: Set<String> = ["basic", "bearer", "digest", "token"]
}
