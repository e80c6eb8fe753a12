import Foundation

/// Files and folders that an application names by URLs. Records have their paths.
extension URL {
    package static func file(_ path: String) -> URL { URL(fileURLWithPath: path, isDirectory: false) }

    /// The path of a file URL; the text of any other URL, which is refused by name later.
    package var filePath: String {
        let path = path(percentEncoded: false)
        // Foundation shows bytes that are not UTF-8 as an empty path or as U+FFFD, which would be another file.
        return isFileURL && !path.isEmpty && !path.unicodeScalars.contains("\u{fffd}") ? path : absoluteString
    }
}
