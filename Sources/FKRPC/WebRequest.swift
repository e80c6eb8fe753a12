import FKCore
import Foundation

/// The head of an HTTP request.
package struct WebRequest: Sendable, Hashable {
    /// The method, as it was sent.
    package var method = ""
    /// The path without the query, as it was sent.
    package var path = ""
    /// The query without its question mark; empty without one.
    package var queryText = ""
    /// The fields by lower-case names. Values of fields with the same name are joined by commas.
    package var fields: [String: String] = [:]
    /// The announced length of the body; nil if none is announced.
    package var contentLength: Int?
    /// True if the connection ends after the answer.
    package var isClosing = false

    package init() {}

    /// - Parameter name: in lower case.
    package subscript(_ name: String) -> String? { fields[name] }

    /// True if the comma-separated value of a field contains this word, in any case.
    package func contains(_ word: String, in name: String) -> Bool {
        (fields[name] ?? "").split(separator: ",").contains {
            $0.trimmingCharacters(in: .whitespaces).lowercased() == word
        }
    }

    /// The items of the query, percent-decoded.
    package var query: [(name: String, value: String)] {
        queryText.split(separator: "&").map { item in
            let parts = item.split(separator: "=", maxSplits: 1, omittingEmptySubsequences: false)
            return (Self.decoded(parts[0]), parts.count > 1 ? Self.decoded(parts[1]) : "")
        }
    }

    /// A percent sign without two digits stays.
    private static func decoded(_ text: Substring) -> String {
        String(decoding: Array(text.utf8)[...].percentDecoded, as: UTF8.self)
    }
}
