import FKMiddleware

/// The limits of an application's key-value pairs of a task.
package enum AttributeRules {
    /// The maximum number of pairs.
    package static let maxPairs = 64
    /// The maximum length of a key in UTF-8 bytes.
    package static let maxKeyBytes = 255
    /// The maximum length of a value in UTF-8 bytes.
    package static let maxValueBytes = 4_096

    /// The pairs after a change. A nil value removes its pair.
    ///
    /// - Throws: `.invalidArgument` with the pair that exceeds a limit.
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

    /// Checks all pairs.
    ///
    /// - Throws: same as `applying`.
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
                    "The attribute \(key.visible) has \(value.utf8.count.plural("byte")); at most \(maxValueBytes) fit."
                )
            }
        }
    }
}
