import TestSupport
import Testing

@Suite("The sources of a file's bytes in its record")
struct TraceTests {
    /// Random notes, and the source of each byte as a plain array has it.
    @Test("every byte has the source that was noted last", arguments: 0..<300)
    func lastCounts(seed: UInt64) throws {
        var random = SeededRandom(seed: seed)
        let names: [String?] = [nil, "https://a/f", "https://b/f", "https://c/f"]
        var trace = Trace()
        var bytes = [String?](repeating: nil, count: 40)
        for _ in 0..<Int.random(in: 1...12, using: &random) {
            let start = Int.random(in: 0..<40, using: &random)
            let end = Bool.random(using: &random) ? 40 : Int.random(in: start...40, using: &random)
            let source = names.randomElement(using: &random) ?? nil
            trace.record(Int64(start)..<(end == 40 ? .max : Int64(end)), from: source)
            for index in start..<end { bytes[index] = source }
            // A record is written and read between any two.
            trace = try StoreJSON.decode(Trace.self, from: StoreJSON.encode(trace))
        }
        var found = [String?](repeating: "none", count: 40)
        for run in trace.runs(length: 40) { for index in run.range { found[Int(index)] = run.source } }
        #expect(found == bytes)
        #expect(trace.isEmpty == bytes.allSatisfy { $0 == nil })
    }

    @Test("a record keeps at most 300 bytes for it; what has no room is left out and said", arguments: [1, 3, 40, 400])
    func limit(count: Int) throws {
        var record = TaskRecord(task: TaskDescription(url: "https://own/f"), number: 1, created: .distantPast)
        let signer = String(repeating: "k", count: 900)
        record.task.options.list = ListOrigin(String(repeating: "/folder", count: 90), signer: signer)
        for index in 0..<count {
            let start = Int64(index) << 30
            record.record(
                start..<start + 1 << 29, from: "https://mirror\(index % 7).example/\(index % 7)/long/path?token=x")
        }
        record.adopt(
            {
                var head = ResponseHead(status: 200, url: "https://own/f")
                head.via = (0..<count).map { "https://hop\($0).example/a?signature=secret" }
                return head
            }())
        var bare = record
        bare.edit { $0.response = nil }
        bare.finish(received: 1 << 40, at: .distantPast)
        var none = bare
        none.edit { ($0.trace, $0.completedBy) = (nil, nil) }
        none.task.options.list = nil
        let added = try bare.json().count - none.json().count
        #expect(added <= Trace.limit + "\"options\":{},\"list\":,".utf8.count, "\(added)")
        #expect(!String(decoding: try bare.json(), as: UTF8.self).contains("secret"))
        #expect(count < 3 || record.trace?.isCut == true)
    }

    @Test("a list's long name keeps its end, and a long signer becomes a digest")
    func origin() {
        let short = ListOrigin("https://h/SHA256SUMS?token=abc", signer: "RWQ")
        #expect(short.name == "https://h/SHA256SUMS?token=***" && short.signer == "RWQ")
        let long = ListOrigin(
            String(repeating: "x", count: 200) + "/SHA256SUMS", signer: String(repeating: "k", count: 101))
        #expect(long.name.utf8.count <= 80 && long.name.hasSuffix("/SHA256SUMS"))
        #expect(long.signer?.hasPrefix("sha-256:") == true && long.signer?.utf8.count == 72)
    }
}
