import TestSupport

@testable import FKModel

extension TaskRecord {
    /// Changes fields that only transitions of the record change in production: tests make records that an engine only
    /// writes after a crash, or never.
    mutating func edit(_ change: (inout RecordDraft) throws -> Void) rethrows {
        var reader = FieldReader()
        // Neither visitor throws.
        try? own.visitFields(&reader)
        var draft = RecordDraft(id: id)
        for (name, field) in draft.fields { if let value = reader.values[name] { field.take(value) } }
        try change(&draft)
        var writer = FieldWriter(values: reader.values)
        for (name, field) in draft.fields { writer.values[name] = field.value }
        try? own.visitFields(&writer)
    }
}

/// A field of a draft.
@propertyWrapper
final class RecordField<Value>: AnyRecordField {
    var wrappedValue: Value

    init(wrappedValue: Value) { self.wrappedValue = wrappedValue }
    init() where Value: ExpressibleByNilLiteral { wrappedValue = nil }

    var value: Any { wrappedValue }
    func take(_ value: Any) { if let value = value as? Value { wrappedValue = value } }
}

protocol AnyRecordField {
    var value: Any { get }
    func take(_ value: Any)
}

/// The fields of a record that tests change, by the names that they have in an info file.
struct RecordDraft {
    let id: TaskID
    @RecordField var state: DownloadState = .idle
    @RecordField var task: TaskDescription = TaskDescription(url: "")
    @RecordField var barrels: [String] = []
    @RecordField var bootID: String?
    @RecordField var waiting: Waiting?
    @RecordField var ranges: [SavedRange] = []
    @RecordField var pieces: [PieceChecksum]?
    @RecordField var expected: Int64?
    @RecordField var validator: Validator?
    @RecordField var source: String?
    @RecordField var trace: Trace?
    @RecordField var completedBy: String?
    @RecordField var attempts: Int = 0
    @RecordField var error: DownloadError?
    @RecordField var response: ResponseHead?
    @RecordField var partName: String?
    @RecordField var partFolder: String?
    @RecordField var partTime: Int64?
    @RecordField var path: String?
    @RecordField var written: FileIdentity?
    @RecordField var setAside: [SetAsideFile]?
    @RecordField var former: FormerFile?
    @RecordField var leftBehind: [String]?
    @RecordField var created: Date = .distantPast
    @RecordField var started: Date?
    @RecordField var finished: Date?
    @RecordField var lastUsed: Date?
    @RecordField var isForeign: Bool?
    @RecordField var synced: Bool?
    @RecordField var lengthVerified: Bool?
    @RecordField var offered: [String]?
    @RecordField var needsDigest: Bool?
    @RecordField var announced: AnnouncedDigest?
    @RecordField var progress: ProgressMark?
    @RecordField var history: [HistoryLine] = []

    fileprivate var fields: [(name: String, field: any AnyRecordField)] {
        Mirror(reflecting: self).children.compactMap { child in
            // The wrapper of `state` is `_state`.
            (child.value as? any AnyRecordField).map { (String(child.label?.dropFirst() ?? ""), $0) }
        }
    }
}

/// Takes the fields out of a record.
private struct FieldReader: FieldVisitor {
    static var isReading: Bool { false }
    var values: [String: Any] = [:]

    mutating func field<Value: RecordValue>(_ name: StaticString, _ value: inout Value) { values["\(name)"] = value }

    mutating func field<Value: RecordValue>(_ name: StaticString, _ value: inout Value?) {
        if let value { values["\(name)"] = value }
    }

    mutating func rare<Value: Codable>(_ name: StaticString, _ value: inout Value?, isRequired: Bool) {
        if let value { values["\(name)"] = value }
    }
}

/// Puts fields into a record.
private struct FieldWriter: FieldVisitor {
    static var isReading: Bool { true }
    var values: [String: Any]

    mutating func field<Value: RecordValue>(_ name: StaticString, _ value: inout Value) {
        value = values["\(name)"] as? Value ?? value
    }

    mutating func field<Value: RecordValue>(_ name: StaticString, _ value: inout Value?) {
        value = values["\(name)"] as? Value
    }

    mutating func rare<Value: Codable>(_ name: StaticString, _ value: inout Value?, isRequired: Bool) {
        value = values["\(name)"] as? Value
    }
}
