import FKMiddleware
import Foundation

/// A fault of a list or of one of its entries, and its position.
public struct ManifestError: Error, Sendable, Hashable, LocalizedError, CustomStringConvertible {
    /// The format of the list; nil if none was recognized.
    public var form: Manifest.Form?
    /// The file that contains the fault, if a list has several, such as the `fetch.txt` of a bag; nil otherwise.
    public var file: String?
    /// The line, from 1; 0 for the whole list.
    public var line: Int
    /// The position in the line in bytes, from 1; 0 for the whole line.
    public var column: Int
    /// The fault and its remedy, without a final full stop. Control characters are escaped.
    public var reason: String

    /// Creates an error. The default position is the whole list.
    ///
    /// - Parameter reason: control characters in it are escaped, and the secrets of URLs in single quotes are masked.
    public init(form: Manifest.Form?, file: String? = nil, line: Int = 0, column: Int = 0, _ reason: String) {
        self.form = form
        self.file = file
        self.line = line
        self.column = column
        self.reason = reason.quotesMasked.visible
    }

    /// A line such as `Metalink 4, line 3, column 5: …`.
    public var description: String {
        var place: [String] = []
        if let form { place.append(form.title) }
        if let file { place.append(file.visible) }
        if line > 0 { place.append("line \(line)") }
        if column > 0 { place.append("column \(column)") }
        return place.isEmpty ? reason : "\(place.joined(separator: ", ")): \(reason)"
    }

    /// Equal to `description`.
    public var errorDescription: String? { description }
}
