import FKMiddleware
import Foundation

/// The name of a piece that a `FileTransport` fetches. It travels with the request as text, because the process that
/// receives the file may not be the one that asked for it.
package struct PieceKey: Sendable, Hashable, CustomStringConvertible {
    package let task: TaskID
    /// The generation of its record: the submission number. A task that was trashed and added again has another one.
    package let generation: UInt64
    /// A fingerprint of the URL and of the task's own header fields.
    package let form: UInt64
    /// A fingerprint of `If-Range`; 0 without it.
    package let condition: UInt64
    /// The offset of the first byte.
    package let start: Int64
    /// The offset after the last byte; nil for the whole file, requested without `Range`.
    package let end: Int64?

    package init(
        task: TaskID, generation: UInt64, form: UInt64 = 0, condition: UInt64 = 0, start: Int64 = 0, end: Int64? = nil
    ) {
        self.task = task
        self.generation = generation
        self.form = form
        self.condition = condition
        self.start = start
        self.end = end
    }

    /// The same request for other bytes.
    package func with(start: Int64, end: Int64?) -> PieceKey {
        PieceKey(task: task, generation: generation, form: form, condition: condition, start: start, end: end)
    }

    /// The value of `Range` (RFC 9110 section 14.1.2); nil for the whole file.
    package var rangeHeader: String? { end.map { "bytes=\(start)-\($0 - 1)" } }

    // MARK: Text

    private static let version = "fk1"

    /// ASCII letters, digits, `.` and `-`, at most 170 characters: also a file name.
    package var description: String {
        let range = end.map { "\(start)-\($0)" } ?? "all"
        return [Self.version, task.hex, String(generation), Self.hex(form), Self.hex(condition), range]
            .joined(separator: ".")
    }

    /// Parses the text of a key; nil for any other text, such as that of another version or of the application's own
    /// tasks.
    package init?(_ text: String) {
        let parts = text.split(separator: ".", omittingEmptySubsequences: false)
        guard parts.count == 6, parts[0] == Self.version, let task = TaskID(hex: String(parts[1])),
            let generation = UInt64(parts[2]), let form = UInt64(parts[3], radix: 16),
            let condition = UInt64(parts[4], radix: 16)
        else { return nil }
        var range: (start: Int64, end: Int64?) = (0, nil)
        if parts[5] != "all" {
            let ends = parts[5].split(separator: "-", omittingEmptySubsequences: false).map { Int64($0) }
            guard ends.count == 2, let start = ends[0], let end = ends[1], 0 <= start, start < end else { return nil }
            range = (start, end)
        }
        self.init(
            task: task, generation: generation, form: form, condition: condition, start: range.start, end: range.end)
        // One text for each key.
        guard description == text else { return nil }
    }

    private static func hex(_ number: UInt64) -> String { String(number, radix: 16) }

    /// A fingerprint of texts (FNV-1a, 64 bits). It is the same in each process, and never 0.
    package static func fingerprint(_ texts: [String]) -> UInt64 {
        var hash: UInt64 = 0xcbf2_9ce4_8422_2325
        for text in texts {
            for byte in text.utf8 { hash = (hash ^ UInt64(byte)) &* 0x100_0000_01b3 }
            hash = (hash ^ 0xff) &* 0x100_0000_01b3
        }
        return max(hash, 1)
    }
}
