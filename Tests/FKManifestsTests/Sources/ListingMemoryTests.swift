import FKCore
import FKTransport
import Foundation
import TestSupport
import Testing

@testable import FKManifests

@Suite("Listings that servers confirm") struct ListingMemoryTests {
    private static let date = HeaderField("Date", "Fri, 27 Nov 2026 02:00:00 GMT")
    private static let tag = HeaderField("ETag", "\"1\"")
    private static let apache = HeaderField("Server", "Apache/2.4.58 (Ubuntu)")
    private static let ranges = HeaderField("Accept-Ranges", "bytes")

    private static func modified(_ time: String) -> HeaderField {
        HeaderField("Last-Modified", "Fri, 27 Nov 2026 \(time) GMT")
    }

    @Test("only what a server's 304 can stand for is remembered")
    func rules() {
        func isKept(_ fields: [HeaderField], status: Int = 200, at url: String = "http://h/d/") -> Bool {
            ListedPlace.Memory.isConfirmable(
                ResponseHead(status: status, fields: fields + [Self.date], url: url), "http://h/d/")
        }
        #expect(isKept([Self.tag]) && isKept([Self.modified("01:59:00")]))
        // A change within the second of the answer would not show.
        #expect(!isKept([Self.modified("02:00:00")]) && isKept([Self.modified("02:00:00"), Self.tag]))
        #expect(!isKept([]) && !isKept([Self.tag], status: 203))
        #expect(!isKept([Self.tag, HeaderField("Cache-Control", "private, no-store")]))
        #expect(!isKept([Self.tag, HeaderField("Content-Encoding", "gzip")]))
        // The time of the folder says nothing about a file that changed in place.
        #expect(!isKept([Self.tag, Self.modified("01:00:00"), Self.apache]))
        #expect(isKept([Self.tag, Self.modified("01:00:00"), Self.apache, Self.ranges]))
        #expect(isKept([Self.tag], at: "http://h/e/") && !isKept([Self.tag], at: "http://h/e/?key=1"))
    }

    @Test("an answer comes back as it was, without secrets and other fields")
    func file() throws {
        let scratch = try TemporaryFolder()
        let path = scratch.file("listing").path
        var request = SourceRequest("http://h/d/?sig=s3cret")
        request.secrets = [SourceSecret(HeaderField("Authorization", "Bearer t0ken"), for: "http://h/")]
        let head = ResponseHead(
            status: 200, fields: [Self.tag, HeaderField("Set-Cookie", "c00kie"), HeaderField("Link", "<x>; rel=next")],
            url: request.url)
        let memory = ListedPlace.Memory(path, scratch: scratch.path)
        #expect(memory.answer(to: request) == nil)
        memory.keep(SourceAnswer(head: head, bytes: [1, 10, 0, 255]), to: request, isConfirmed: false)
        memory.store()
        let read = ListedPlace.Memory(path, scratch: scratch.path)
        let answer = try #require(read.answer(to: request))
        #expect(answer.bytes == [1, 10, 0, 255] && answer.head.url == request.url)
        #expect(answer.head.fields.map(\.name) == ["ETag", "Link"])
        var other = request
        other.headers = [HeaderField("Accept", "x/y")]
        #expect(read.answer(to: other) == nil)
        let text = String(decoding: try #require(FileManager.default.contents(atPath: path)), as: UTF8.self)
        for secret in ["t0ken", "c00kie", "s3cret"] { #expect(!text.contains(secret)) }
        // A listing without answers to confirm leaves no file.
        read.store()
        #expect(!FileManager.default.fileExists(atPath: path))
    }

    @Test("a 304 from another address confirms nothing")
    func redirected() async throws {
        let scratch = try TemporaryFolder()
        let memory = ListedPlace.Memory(scratch.file("listing").path, scratch: scratch.path)
        let place = SourcePlace(
            try #require(SourceReference("http://h/d/")), folderName: "d", address: "http://h/d/")
        let request = SourceRequest("http://h/d/")
        let head = ResponseHead(status: 200, fields: [Self.tag], url: request.url)
        memory.keep(SourceAnswer(head: head, bytes: [1]), to: request, isConfirmed: false)
        memory.store()
        let transport = ScriptedTransport { request, _ in
            guard request.urlRequest.value(forHTTPHeaderField: "If-None-Match") == nil else {
                return .init([.head(ResponseHead(status: 304, fields: [], url: "http://other/d/"))])
            }
            return .init([.head(ResponseHead(status: 200, fields: [], url: "http://h/d/")), .bytes([2])])
        }
        defer { transport.shutdown() }
        let read = ListedPlace.Memory(scratch.file("listing").path, scratch: scratch.path)
        let client = SourceClient(place, SourceChoice(), TaskOptions(), [:], memory: read, over: transport)
        #expect(try await client.get(request).bytes == [2])
        #expect(transport.requests.count == 2)
    }
}
