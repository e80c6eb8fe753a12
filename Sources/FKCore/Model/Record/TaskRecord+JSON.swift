import FKMiddleware
import Foundation

/// The payload of an info file. Its members and their order are in `visitFields`.
extension TaskRecord {
    package func json() throws -> [UInt8] {
        var copy = self
        return try copy.jsonText().bytes
    }

    /// The record as JSON in the memory that writes it. It does not change the record, but needs it alone: the visit of a copy
    /// would copy every member.
    ///
    /// - Parameters:
    ///   - leading: the number of bytes to reserve in front of the text; the default is 0.
    ///   - places: the stored form of places; the default has only absolute ones.
    ///   - isRest: true leaves out the id and the description (`RecordHead`). The default is false, and the mark of the text
    ///     is then their end.
    package mutating func jsonText(
        leading: Int = 0, places: Places = .none, isRest: Bool = false
    ) throws -> JSONText {
        let isNested = hasNestedPlaces
        var text = JSONText(
            capacity: Self.usualPayload, leading: leading, isRest: isRest, places: isNested ? nil : places)
        if isNested {
            var fields = own
            fields.store(by: places)
            try fields.write(to: &text, isRest)
        } else {
            try own.write(to: &text, isRest)
        }
        return text
    }

    /// The size in bytes that nearly all payloads fit in.
    package static let usualPayload = 1_760
    /// The maximum size in bytes of a payload in another form than ours. `JSONDecoder` needs many times its size in
    /// memory.
    static let largestForeignPayload = 1 << 20

    /// Reads and checks a payload.
    ///
    /// - Parameter places: the stored form of places; the default has only absolute ones.
    /// - Throws: `.corruptInfo` with the part that did not match; `.destination` for a base that has no folder here.
    package static func read(_ payload: UnsafeRawBufferPointer, places: Places = .none) throws -> TaskRecord {
        if var record = readOwn(payload) {
            try record.resolve(by: places)
            try record.check()
            return record
        }
        guard payload.count <= largestForeignPayload else {
            throw DownloadError(.corruptInfo, "Not a TaskRecord in a form this version understands.")
        }
        var record = try StoreJSON.decode(TaskRecord.self, from: payload)
        try record.resolve(by: places)
        try record.check()
        return record
    }

    /// Reads a payload in the form of `jsonText`; nil for any other form, which `StoreJSON.decode` may still read.
    static func readOwn(_ payload: UnsafeRawBufferPointer) -> TaskRecord? {
        payload.withMemoryRebound(to: UInt8.self) { bytes in
            do {
                var scanner = JSONScanner(bytes)
                let record = TaskRecord(try Fields.read(&scanner))
                return scanner.isAtEnd ? record : nil
            } catch {
                return nil
            }
        }
    }
}
