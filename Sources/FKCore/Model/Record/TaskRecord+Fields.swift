import FKMiddleware
import Foundation

extension TaskRecord {
    /// The values of a record. Their meaning stands at the properties of `TaskRecord`.
    struct Fields: Codable, Sendable, Hashable {
        var id: TaskID
        var task: TaskDescription
        var number: UInt64
        var state: DownloadState
        var waiting: Waiting?
        var ranges: [SavedRange] = []
        var pieces: [PieceChecksum]?
        var expected: Int64?
        var validator: Validator?
        var source: String?
        var announced: AnnouncedDigest?
        var progress: ProgressMark?
        var needsDigest: Bool?
        var link: String?
        var offered: [String]?
        var attempts: Int = 0
        var error: DownloadError?
        var response: ResponseHead?
        var barrels: [String] = []
        var partName: String?
        var partFolder: String?
        var partTime: Int64?
        var path: String?
        var written: FileIdentity?
        var setAside: [SetAsideFile]?
        var former: FormerFile?
        var changed: FileChange?
        var leftBehind: [String]?
        var created: Date
        var started: Date?
        var finished: Date?
        var lastUsed: Date?
        var bytesPerSecond: Int64?
        var isForeign: Bool?
        var synced: Bool?
        var bootID: String?
        var lengthVerified: Bool?
        var history: [HistoryLine] = []
        var trace: Trace?
        var completedBy: String?
        var adopted: AdoptedFile?
    }
}

extension TaskRecord.Fields: RecordObject {
    static let blank = Self(
        id: TaskDescription.blank.id, task: .blank, number: 0, state: .idle,
        created: Date(timeIntervalSince1970: 0))

    /// Every member of the payload. Common members come with a fast form, rare ones go through Foundation's encoder.
    mutating func visitFields<Visitor: FieldVisitor & ~Copyable>(_ visitor: inout Visitor) throws {
        try visitHead(&visitor)
        try visitRest(&visitor)
    }

    /// The members of a `RecordHead`.
    mutating func visitHead<Visitor: FieldVisitor & ~Copyable>(_ visitor: inout Visitor) throws {
        try visitor.field("id", &id)
        try visitor.field("task", &task)
    }

    /// Writes all members, or those after the head.
    mutating func write(to text: inout JSONText, _ isRest: Bool) throws {
        if !isRest {
            text.beginObject()
            try visitHead(&text)
            text.setMark()
        }
        try visitRest(&text)
        text.endObject()
    }

    mutating func visitRest<Visitor: FieldVisitor & ~Copyable>(_ visitor: inout Visitor) throws {
        try visitor.field("number", &number)
        try visitor.field("state", &state)
        try visitor.field("waiting", &waiting)
        try visitor.field("ranges", &ranges)
        try visitor.field("pieces", &pieces)
        try visitor.field("expected", &expected)
        try visitor.field("validator", &validator)
        try visitor.field("source", &source)
        try visitor.field("needsDigest", &needsDigest)
        try visitor.field("link", &link)
        try visitor.field("offered", &offered)
        try visitor.field("attempts", &attempts)
        try visitor.field("error", &error)
        try visitor.field("response", &response)
        try visitor.field("barrels", &barrels)
        try visitor.field("partName", &partName)
        try visitor.place("partFolder", &partFolder)
        try visitor.field("partTime", &partTime)
        try visitor.place("path", &path)
        try visitor.field("written", &written)
        try visitor.rare("setAside", &setAside)
        try visitor.field("leftBehind", &leftBehind)
        try visitor.field("created", &created)
        try visitor.field("started", &started)
        try visitor.field("finished", &finished)
        try visitor.field("lastUsed", &lastUsed)
        try visitor.field("bytesPerSecond", &bytesPerSecond)
        try visitor.field("isForeign", &isForeign)
        try visitor.field("synced", &synced)
        try visitor.field("bootID", &bootID)
        try visitor.field("lengthVerified", &lengthVerified)
        try visitor.field("history", &history)
        try visitor.rare("former", &former)
        try visitor.rare("changed", &changed)
        try visitor.rare("trace", &trace)
        try visitor.field("completedBy", &completedBy)
        try visitor.rare("announced", &announced)
        try visitor.field("progress", &progress)
        try visitor.rare("adopted", &adopted)
    }
}
