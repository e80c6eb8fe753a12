import FKMiddleware
import Foundation

/// The status line and header fields of a response.
public struct ResponseHead: Sendable, Hashable, Codable {
    /// The status code, 100 to 999 (RFC 9110 section 15).
    public var status: Int
    /// The HTTP version: `1.0`, `1.1`, `2` or `3`.
    public var httpVersion: String
    /// All header field lines, in order.
    public var fields: [HeaderField]
    /// The URL that answered after redirects, without userinfo and fragment.
    public var url: String
    /// The number of redirects followed.
    public var redirects: Int
    /// Fields of the redirects that describe the file (`Link`, `X-Linked-ETag`, `X-Linked-Size`), and the limits that the first
    /// one announces. They are not stored.
    package var carried: [HeaderField] = []
    /// The URLs that redirected, after the first one. They are not stored here (`Trace.via`).
    package var via: [String] = []

    private enum CodingKeys: String, CodingKey {
        case status, httpVersion, fields, url, redirects
    }

    /// Creates a head. Transports call it for each final response.
    public init(status: Int, httpVersion: String = "1.1", fields: [HeaderField] = [], url: String, redirects: Int = 0) {
        self.status = status
        self.httpVersion = httpVersion
        self.fields = fields
        self.url = url
        self.redirects = redirects
    }

    /// The values of all fields of that name (compared without case), joined by `, ` (RFC 9110 section 5.3); nil if
    /// there is none.
    public subscript(name: String) -> String? {
        first(name) == nil ? nil : values(of: name).joined(separator: ", ")
    }

    /// The value of the first field of that name; nil if there is none.
    package func first(_ name: String) -> String? {
        fields.indices.first { fields[$0].name.caseInsensitiveEquals(name) }.map { fields[$0].value }
    }

    /// The values of all fields of that name (compared without case), in order.
    package func values(of name: String) -> [String] {
        fields.lazy.filter { $0.name.caseInsensitiveEquals(name) }.map(\.value)
    }

    /// The content coding of a body that should have none: in lower case, without `identity`, at most 100 characters,
    /// and `gzip` for `x-gzip` (RFC 9110 section 8.4.1). nil for plain bytes. Some servers send values that are not
    /// codings, such as `none`, `binary` or `UTF-8`.
    package var contentCoding: String? {
        guard let value = self["Content-Encoding"] else { return nil }
        let codings = value.lowercased().split(separator: ",").map { $0.trimmingCharacters(in: .whitespaces) }
            .filter { !$0.isEmpty && $0 != "identity" }
            .map { ["x-gzip": "gzip", "x-compress": "compress"][$0] ?? $0 }
        return codings.isEmpty ? nil : String(codings.joined(separator: ", ").prefix(100))
    }

    /// True if the body can be a file or a part of one (RFC 9110 sections 15.3.1, 15.3.4 and 15.3.7). The body of any
    /// other status only explains it.
    package var carriesFile: Bool { status == 200 || status == 203 || status == 206 || isUnknownSuccess }

    /// True for a status that means 200, because nobody has defined it for GET (RFC 9110 section 15). The body of a 226 with `IM` is a
    /// difference (RFC 3229), which nobody asks for.
    package var isUnknownSuccess: Bool { (209...299).contains(status) && (status != 226 || self["IM"] == nil) }

    /// True if the body can be a document. Status 207 has one about several resources (RFC 4918 section 13).
    package var carriesDocument: Bool { carriesFile || status == 207 }

    /// The head as Foundation's type, for middlewares; nil if Foundation cannot read the URL.
    package var httpURLResponse: HTTPURLResponse? {
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
    @inlinable
    package func caseInsensitiveEquals(_ other: String) -> Bool {
        // Most names differ in length or are equal, which needs no call.
        utf8.count == other.utf8.count && (self == other || hasSameLetters(as: other))
    }

    @usableFromInline
    func hasSameLetters(as other: String) -> Bool {
        // Most names of one length differ in their first letter.
        guard let first = utf8.first, let otherFirst = other.utf8.first, (first ^ otherFirst) & ~0x20 == 0 else {
            return false
        }
        var one = self
        var other = other
        return one.withUTF8 { one in
            other.withUTF8 { other in
                zip(one, other).allSatisfy { $0 == $1 || $0 ^ $1 == 0x20 && (0x61...0x7a).contains($0 | 0x20) }
            }
        }
    }
}
