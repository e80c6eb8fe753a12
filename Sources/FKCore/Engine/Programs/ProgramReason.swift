import FKMiddleware
import Foundation

/// Shortens the output of a program for an error: one line, without control characters and secrets.
enum ProgramReason {
    /// The most characters of a reason.
    static let maxLength = 300

    /// The first line that has a visible character; nil without one.
    ///
    /// - Parameter mask: masks the secrets that are known. The default masks none.
    static func text(_ bytes: [UInt8], mask: (String) -> String = { $0 }) -> String? {
        let lines = bytes.prefix(16 << 10).split(whereSeparator: { $0 == 0x0a || $0 == 0x0d })
        for line in lines {
            let text = String(decoding: line, as: UTF8.self).trimmingCharacters(in: .whitespaces)
            if text.isEmpty { continue }
            let shown = maskURLs(mask(text)).visible
            return shown.count <= maxLength ? shown : shown.prefix(maxLength - 1) + "…"
        }
        return nil
    }

    /// Masks the secrets of the URLs in a text.
    static func maskURLs(_ text: String) -> String {
        guard text.contains("://") else { return text }
        let parts = text.split(separator: " ", omittingEmptySubsequences: false)
        return parts.map { $0.contains("://") ? String($0).masked : String($0) }.joined(separator: " ")
    }
}
