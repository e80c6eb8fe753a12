import FKMiddleware
import Foundation
import Testing

@testable import FKCore

extension TaskRecord: CustomTestStringConvertible {
    public var testDescription: String { "task \(number)" }
}

@Suite("Store JSON")
struct StoreJSONTests {
    /// The same JSON value, whoever wrote it.
    private func expectSame(_ value: some Encodable, sourceLocation: SourceLocation = #_sourceLocation) throws {
        let encoder = JSONEncoder()
        encoder.dateEncodingStrategy = .secondsSince1970
        let theirs = try JSONSerialization.jsonObject(with: encoder.encode(value), options: .fragmentsAllowed)
        let bytes = try #require(try StoreJSONWriter.encode(value), sourceLocation: sourceLocation)
        let ours = try JSONSerialization.jsonObject(with: Data(bytes), options: .fragmentsAllowed)
        #expect(
            (ours as? NSObject) == (theirs as? NSObject), "\(String(decoding: bytes, as: UTF8.self))",
            sourceLocation: sourceLocation)
    }

    @Test("records say the same as JSONEncoder's", arguments: [TaskRecord.sample(), TaskRecord.full()])
    func records(record: TaskRecord) throws {
        try expectSame(record)
    }

    @Test("requests say the same", arguments: StoreMailboxTests.requests)
    func requests(request: EngineRequest) throws {
        try expectSame(request)
    }

    @Test("all kinds of plain values")
    func plain() throws {
        try expectSame([1, -1, .max, .min] as [Int64])
        try expectSame(["a": UInt64.max, "\u{1f}\"\\/": 0])
        try expectSame([0.1, 1e300, -2e-300, 1_700_000_000.123])
        try expectSame([true, false])
        try expectSame([nil, "x", ""] as [String?])
        try expectSame([[], [[1], []], [[]]] as [[[Int]]])
        try expectSame(
            [[:], ["a": [:]], ["é": ["\u{1F600}": "\r\n\t\u{0}\u{7f}\u{2028}"]]] as [[String: [String: String]]])
        try expectSame("x")
        try expectSame(Int?.none)
        try expectSame(DownloadError(.disk, "m", underlying: "\\"))
        try expectSame([Date(timeIntervalSince1970: 0.5), Date(timeIntervalSince1970: -1.25)])
    }

    @Test("times are kept to the millisecond")
    func dates() throws {
        let date = Date(timeIntervalSince1970: 1_700_000_000.123_456)
        let bytes = try StoreJSON.encode([date])
        #expect(String(decoding: bytes, as: UTF8.self) == "[1700000000.123]")
        #expect(try StoreJSON.decode([Date].self, from: bytes) == [Date(timeIntervalSince1970: 1_700_000_000.123)])
    }

    private struct Nothing: Encodable {
        func encode(to encoder: any Encoder) throws {}
    }

    private struct Twice: Codable, Equatable {
        enum Keys: CodingKey { case a, b, list }
        var a = 1
        var b = 2
        init() {}
        init(from decoder: any Decoder) throws {
            let container = try decoder.container(keyedBy: Keys.self)
            a = try container.decode(Int.self, forKey: .a)
            b = try container.decode(Int.self, forKey: .b)
        }
        func encode(to encoder: any Encoder) throws {
            var first = encoder.container(keyedBy: Keys.self)
            try first.encode(a, forKey: .a)
            // Legal, and what a subclass does: the same container again.
            var second = encoder.container(keyedBy: Keys.self)
            try second.encode(b, forKey: .b)
        }
    }

    private struct Nested: Encodable {
        func encode(to encoder: any Encoder) throws {
            var outer = encoder.container(keyedBy: Twice.Keys.self)
            var list = outer.nestedUnkeyedContainer(forKey: .list)
            try list.encode(1)
            var object = list.nestedContainer(keyedBy: Twice.Keys.self)
            try object.encode("x", forKey: .a)
            try list.encodeNil()
            _ = list.nestedUnkeyedContainer()
            try outer.encodeNil(forKey: .b)
            try outer.encode(Nothing(), forKey: .a)
        }
    }

    @Test("nested containers close in time; a value that encodes nothing is an empty object")
    func nested() throws {
        try expectSame(Nested())
        try expectSame([Nothing(), Nothing()])
    }

    private struct Late: Encodable {
        func encode(to encoder: any Encoder) throws {
            var outer = encoder.container(keyedBy: Twice.Keys.self)
            var list = outer.nestedUnkeyedContainer(forKey: .list)
            try outer.encode(1, forKey: .a)
            try list.encode(2)
        }
    }

    @Test("what the writer does not know is left to JSONEncoder")
    func fallback() throws {
        #expect(try StoreJSONWriter.encode(Twice()) == nil)
        #expect(try StoreJSON.decode(Twice.self, from: StoreJSON.encode(Twice())) == Twice())
        #expect(try StoreJSONWriter.encode(Late()) == nil)
        #expect(try StoreJSONWriter.encode([Data([1])]) == nil)
        #expect(try StoreJSON.decode([Data].self, from: StoreJSON.encode([Data([1, 2])])) == [Data([1, 2])])
        let url = try #require(URL(string: "https://example.com/"))
        #expect(try StoreJSON.decode([URL].self, from: StoreJSON.encode([url])) == [url])
        #expect(throws: DownloadError.self) { try StoreJSON.encode([Double.nan]) }
    }

    @Test("what is no JSON, or another value's, is a typed error", arguments: ["", "{", "[]", "{\"id\":1}", "\u{0}"])
    func garbage(text: String) {
        do {
            _ = try StoreJSON.decode(TaskRecord.self, from: Array(text.utf8))
            Issue.record("must fail")
        } catch {
            #expect((error as? DownloadError)?.code == .corruptInfo)
        }
    }
}
