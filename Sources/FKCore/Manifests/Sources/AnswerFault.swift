/// A fault of what a source says, without a final full stop.
struct AnswerFault: Error, Sendable, Hashable {
    let reason: String

    init(_ reason: String) { self.reason = reason }
}

/// Reads small JSON documents of APIs.
enum SourceJSON {
    /// Reads a document that is an object.
    ///
    /// - Parameter name: the document, for the fault.
    /// - Throws: `AnswerFault` for another one.
    static func object(_ bytes: [UInt8], _ name: String) throws(AnswerFault) -> JSONReader.Object {
        var reader = JSONReader(bytes)
        do throws(JSONReader.Fault) {
            guard let object = try reader.value().object else {
                throw JSONReader.Fault(reason: "an object is expected here", offset: 0)
            }
            try reader.expectEnd()
            return object
        } catch {
            throw AnswerFault("\(name) cannot be read: \(error.reason), at byte \(error.offset)")
        }
    }
}

extension JSONReader.Value {
    /// True for the word `true`.
    var isTrue: Bool { if case .bool(let value) = self { value } else { false } }
}
