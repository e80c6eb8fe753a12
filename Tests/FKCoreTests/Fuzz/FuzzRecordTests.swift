import TestSupport
import Testing

@testable import FKModel

/// Records whose JSON was damaged. An info file's checksum usually refuses them first.
@Suite("Fuzzed records")
struct FuzzRecordTests {
    @Test("are never read in another way than Foundation's", arguments: FuzzRun.shards)
    func records(shard: Int) async throws {
        let originals = try RecordReadingTests.records().map { try $0.json() }
        try await FuzzRun("records", usual: 40_000)(shard: shard, of: FuzzRun.shards.count) { random in
            var json = random.pick(originals)
            for _ in 0...random.below(2) {
                if random.oneIn(2) {
                    JSONMutation.apply(&json, &random)
                } else {
                    Mutation.apply(&json, with: random.pick(originals), &random)
                }
            }
            guard let ours = json.withUnsafeBytes({ TaskRecord.readOwn($0) }) else { return nil }
            let theirs = try? StoreJSON.decode(TaskRecord.self, from: json)
            return ours == theirs ? nil : "read from \(String(decoding: json, as: UTF8.self))"
        }
    }
}
