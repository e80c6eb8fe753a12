import FKMiddleware

/// How many pairs of its own an application may keep with a task, and how long they may be.
package enum AttributeRules {
    package static let maxPairs = 64
    package static let maxKeyBytes = 255
    package static let maxValueBytes = 4_096

    /// The pairs after a change; a nil value removes one.
    ///
    /// - Throws: `.invalidArgument` naming the pair that does not fit.
    package static func applying(_ changes: [String: String?], to old: [String: String]) throws(DownloadError)
        -> [String: String]
    {
        var result = old
        for (key, value) in changes {
            if let value { result[key] = value } else { result[key] = nil }
        }
        try check(result)
        return result
    }

    /// - Throws: as `applying`.
    package static func check(_ pairs: [String: String]) throws(DownloadError) {
        guard pairs.count <= maxPairs else {
            throw DownloadError(
                .invalidArgument, "A task can keep \(maxPairs) attributes; it would have \(pairs.count).")
        }
        for (key, value) in pairs {
            guard (1...maxKeyBytes).contains(key.utf8.count) else {
                throw DownloadError(
                    .invalidArgument, "The name of an attribute has 1 to \(maxKeyBytes) bytes, not \(key.utf8.count).")
            }
            guard value.utf8.count <= maxValueBytes else {
                throw DownloadError(
                    .invalidArgument,
                    "The attribute \(Escaping.visible(key)) has \(Plural.count(value.utf8.count, "byte")); at most \(maxValueBytes) fit."
                )
            }
        }
    }
}
