import FKMiddleware
import Foundation

/// The payload of an info file. Its members and their order are in `visitFields`.
extension TaskRecord {
    /// The record as JSON.
    func json() throws -> [UInt8] { try jsonText().bytes }

    /// - Parameter leading: bytes of room in front of it.
    func jsonText(leading: Int = 0) throws -> JSONText {
        var text = JSONText(capacity: InfoFormat.usualSlotSize, leading: leading)
        try write(to: &text)
        return text
    }

    /// Larger payloads are read only in the form in which we write them: `JSONDecoder` takes memory many times over.
    static let largestForeignPayload = 1 << 20

    /// - Throws: `.corruptInfo` naming what did not fit.
    static func read(_ payload: UnsafeRawBufferPointer) throws -> TaskRecord {
        if let record = readOwn(payload) { return try record.checked() }
        guard payload.count <= largestForeignPayload else {
            throw DownloadError(.corruptInfo, "Not a TaskRecord in a form this version understands.")
        }
        return try StoreJSON.decode(TaskRecord.self, from: payload).checked()
    }

    /// nil for anything that is not in the form that `jsonText` has; `StoreJSON.decode` may still read it.
    static func readOwn(_ payload: UnsafeRawBufferPointer) -> TaskRecord? {
        payload.withMemoryRebound(to: UInt8.self) { bytes in
            do {
                var scanner = JSONScanner(bytes)
                let record = try TaskRecord.read(&scanner)
                return scanner.isAtEnd ? record : nil
            } catch {
                return nil
            }
        }
    }
}
