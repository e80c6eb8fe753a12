import TestSupport

@testable import FKCore
@testable import FKModel

extension TaskRecord {
    /// Changes fields that only transitions of the record change in production: tests make records that an engine only
    /// writes after a crash, or never.
    mutating func edit(_ change: (inout RecordDraft) throws -> Void) rethrows {
        var reader = FieldReader()
        // Neither visitor throws.
        try? own.visitFields(&reader)
        var draft = RecordDraft(self, reader.values)
        try change(&draft)
        var writer = FieldWriter(values: draft.values)
        try? own.visitFields(&writer)
    }
}

/// The fields of a record that tests change, by the names that they have in an info file.
struct RecordDraft {
    let id: TaskID
    fileprivate var values: [String: Any]

    fileprivate init(_ record: TaskRecord, _ values: [String: Any]) {
        id = record.id
        self.values = values
    }

    private subscript<Value>(_ name: String) -> Value? {
        get { values[name] as? Value }
        set { values[name] = newValue }
    }

    var state: DownloadState {
        get { self["state"] ?? .idle }
        set { self["state"] = newValue }
    }
    var task: TaskDescription {
        get { self["task"] ?? TaskDescription(url: "") }
        set { self["task"] = newValue }
    }
    var barrels: [String] {
        get { self["barrels"] ?? [] }
        set { self["barrels"] = newValue }
    }
    var bootID: String? {
        get { self["bootID"] }
        set { self["bootID"] = newValue }
    }
    var waiting: Waiting? {
        get { self["waiting"] }
        set { self["waiting"] = newValue }
    }
    var ranges: [SavedRange] {
        get { self["ranges"] ?? [] }
        set { self["ranges"] = newValue }
    }
    var pieces: [PieceChecksum]? {
        get { self["pieces"] }
        set { self["pieces"] = newValue }
    }
    var expected: Int64? {
        get { self["expected"] }
        set { self["expected"] = newValue }
    }
    var validator: Validator? {
        get { self["validator"] }
        set { self["validator"] = newValue }
    }
    var source: String? {
        get { self["source"] }
        set { self["source"] = newValue }
    }
    var trace: Trace? {
        get { self["trace"] }
        set { self["trace"] = newValue }
    }
    var completedBy: String? {
        get { self["completedBy"] }
        set { self["completedBy"] = newValue }
    }
    var attempts: Int {
        get { self["attempts"] ?? 0 }
        set { self["attempts"] = newValue }
    }
    var error: DownloadError? {
        get { self["error"] }
        set { self["error"] = newValue }
    }
    var response: ResponseHead? {
        get { self["response"] }
        set { self["response"] = newValue }
    }
    var partName: String? {
        get { self["partName"] }
        set { self["partName"] = newValue }
    }
    var partFolder: String? {
        get { self["partFolder"] }
        set { self["partFolder"] = newValue }
    }
    var partTime: Int64? {
        get { self["partTime"] }
        set { self["partTime"] = newValue }
    }
    var path: String? {
        get { self["path"] }
        set { self["path"] = newValue }
    }
    var written: FileIdentity? {
        get { self["written"] }
        set { self["written"] = newValue }
    }
    var setAside: [SetAsideFile]? {
        get { self["setAside"] }
        set { self["setAside"] = newValue }
    }
    var former: FormerFile? {
        get { self["former"] }
        set { self["former"] = newValue }
    }
    var leftBehind: [String]? {
        get { self["leftBehind"] }
        set { self["leftBehind"] = newValue }
    }
    var created: Date {
        get { self["created"] ?? .distantPast }
        set { self["created"] = newValue }
    }
    var started: Date? {
        get { self["started"] }
        set { self["started"] = newValue }
    }
    var finished: Date? {
        get { self["finished"] }
        set { self["finished"] = newValue }
    }
    var lastUsed: Date? {
        get { self["lastUsed"] }
        set { self["lastUsed"] = newValue }
    }
    var isForeign: Bool? {
        get { self["isForeign"] }
        set { self["isForeign"] = newValue }
    }
    var synced: Bool? {
        get { self["synced"] }
        set { self["synced"] = newValue }
    }
    var lengthVerified: Bool? {
        get { self["lengthVerified"] }
        set { self["lengthVerified"] = newValue }
    }
    var offered: [String]? {
        get { self["offered"] }
        set { self["offered"] = newValue }
    }
    var needsDigest: Bool? {
        get { self["needsDigest"] }
        set { self["needsDigest"] = newValue }
    }
    var history: [HistoryLine] {
        get { self["history"] ?? [] }
        set { self["history"] = newValue }
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
    let values: [String: Any]

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
