import TestSupport
import Testing

@testable import FKStore

@Suite("Text of the lock file")
struct LockTextTests {
    @Test("the lock file has the JSON that an encoder would write", arguments: [nil, "6d1e-4f \"ü\"/"] as [String?])
    func text(examinedBoot: String?) throws {
        var holder = EngineLock.Holder(
            pid: 4_711, host: "höst/\"1\"", bootID: "ca495ecf", started: Date(timeIntervalSince1970: 1_795_365_056.408),
            tick: Date(timeIntervalSince1970: 1_795_365_057))
        holder.examinedBoot = examinedBoot
        #expect(holder.json == (try StoreJSON.encode(holder)))
        holder.beat = 12
        #expect(holder.json == (try StoreJSON.encode(holder)))
        let read = try holder.json.withUnsafeBytes { try StoreJSON.decode(EngineLock.Holder.self, from: $0) }
        #expect(read == holder)
    }
}
