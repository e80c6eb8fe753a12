import FKMiddleware

/// The limits of an application's key-value pairs of a task.
package enum AttributeRules {
    /// The maximum number of pairs.
    package static let maxPairs = 64
    /// The maximum length of a key in UTF-8 bytes.
    package static let maxKeyBytes = 255
    /// The maximum length of a value in UTF-8 bytes.
    package static let maxValueBytes = 4_096
}

extension [String: String] {
    /// The pairs after a change. A nil value removes its pair.
    ///
    /// - Throws: `.invalidArgument` with the pair that exceeds a limit.
    package func changingAttributes(_ changes: [String: String?]) throws(DownloadError) -> [String: String] {
        var result = self
        for (key, value) in changes {
            if let value { result[key] = value } else { result[key] = nil }
        }
        try result.checkAsAttributes()
        return result
    }

    /// Checks all pairs as the attributes of a task.
    ///
    /// - Throws: same as `changingAttributes`.
    package func checkAsAttributes() throws(DownloadError) {
        guard count <= AttributeRules.maxPairs else {
            throw DownloadError(
                .invalidArgument, "A task can keep \(AttributeRules.maxPairs) attributes; it would have \(count).")
        }
        for (key, value) in self {
            guard (1...AttributeRules.maxKeyBytes).contains(key.utf8.count) else {
                throw DownloadError(
                    .invalidArgument,
                    "The name of an attribute has 1 to \(AttributeRules.maxKeyBytes) bytes, not \(key.utf8.count).")
            }
            guard value.utf8.count <= AttributeRules.maxValueBytes else {
                throw DownloadError(
                    .invalidArgument,
                    "The attribute \(key.visible) has \(value.utf8.count.plural("byte")); at most \(AttributeRules.maxValueBytes) fit."
                )
            }
        }
    }
}
