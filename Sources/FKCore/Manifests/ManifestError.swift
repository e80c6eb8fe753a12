import FKMiddleware
import Foundation

/// What is wrong with a list, or with one entry of it, and where.
public struct ManifestError: Error, Sendable, Hashable, LocalizedError, CustomStringConvertible {
    /// The format that the list was read as; nil when none was recognised.
    public var form: Manifest.Form?
    /// The file of the list that is meant, where there are several, such as the `fetch.txt` of a bag.
    public var file: String?
    /// From 1; 0 when the whole list is meant.
    public var line: Int
    /// Bytes from the beginning of the line, from 1; 0 when the whole line is meant.
    public var column: Int
    /// What is wrong and what to do, without a full stop at its end. Control characters are shown as escapes.
    public var reason: String

    /// - Parameter reason: is made safe to show.
    public init(form: Manifest.Form?, file: String? = nil, line: Int = 0, column: Int = 0, _ reason: String) {
        self.form = form
        self.file = file
        self.line = line
        self.column = column
        self.reason = Escaping.visible(reason)
    }

    /// `Metalink 4, line 3, column 5: …`
    public var description: String {
        var place: [String] = []
        if let form { place.append(form.title) }
        if let file { place.append(Escaping.visible(file)) }
        if line > 0 { place.append("line \(line)") }
        if column > 0 { place.append("column \(column)") }
        return place.isEmpty ? reason : "\(place.joined(separator: ", ")): \(reason)"
    }

    /// The same as `description`.
    public var errorDescription: String? { description }
}
