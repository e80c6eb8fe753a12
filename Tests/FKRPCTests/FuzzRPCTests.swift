import FKRPC
import TestSupport
import Testing

/// Bodies that were damaged, forged or generated: every one gets an answer that is JSON.
@Suite("Fuzzed RPC")
struct FuzzRPCTests {
    private static let seeds: [[UInt8]] = [
        #"{"jsonrpc":"2.0","id":"1","method":"aria2.addUri","params":["token:s",["http://h/a"],{"pause":"true","dir":"x"},0]}"#,
        #"{"id":1,"method":"aria2.tellWaiting","params":[0,10,["gid","status"]]}"#,
        #"{"id":1,"method":"aria2.changePosition","params":["1f",1,"POS_CUR"]}"#,
        #"{"id":1,"method":"aria2.changeUri","params":["1f",1,["http://h/a"],["http://h/b"],0]}"#,
        #"{"id":1,"method":"aria2.changeOption","params":["1f",{"max-download-limit":"1K","header":["A: b"]}]}"#,
        #"{"id":1,"method":"system.multicall","params":[[{"methodName":"aria2.getVersion","params":[]},{}]]}"#,
        #"[{"id":1,"method":"aria2.getGlobalStat"},{"id":2,"method":"aria2.tellStatus","params":["0123"]}]"#,
        #"{"id":1,"method":"fk.tasks","params":[{"states":["idle"],"text":"x","limit":5,"offset":1e3,"sort":"name"}]}"#,
        #"{"id":1,"method":"fk.add","params":[{"urls":["http://h/a"],"out":"n","headers":["A: b"],"paused":true}]}"#,
        #"{"id":1,"method":"aria2.changeGlobalOption","params":[{"max-concurrent-downloads":"3","dir":"sub"}]}"#,
    ].map { Array($0.utf8) }

    @Test("every body gets an answer, and downloads stay in their folder", arguments: FuzzRun.shards)
    func bodies(shard: Int) async throws {
        let fixture = try await RPCFixture(isActive: false)
        let waiter = Locked(0)
        try await FuzzRun("RPC bodies", usual: 1_500)(shard: shard, of: FuzzRun.shards.count) { random in
            var body = Self.seeds[random.below(Self.seeds.count)]
            if random.oneIn(2) {
                JSONMutation.apply(&body, &random)
            } else {
                for _ in 0...random.below(3) {
                    Mutation.apply(&body, with: Self.seeds[random.below(Self.seeds.count)], &random)
                }
            }
            let given = body
            let answer = Locked<RPCAnswer?>(nil)
            let done = DispatchSemaphore(value: 0)
            Task {
                let result = await fixture.service.handle(given)
                answer.withLock { $0 = result }
                done.signal()
            }
            guard done.wait(timeout: .now() + 30) == .success, let result = answer.withLock({ $0 }) else {
                return "no answer"
            }
            waiter.withLock { $0 += 1 }
            guard [200, 400, 404, 500].contains(result.status) else { return "status \(result.status)" }
            guard let json = JSON(parsing: result.body) else { return "the answer is not JSON" }
            guard json.array != nil || json["result"] != nil || json["error"] != nil else {
                return "no result: \(json)"
            }
            return nil
        }
        let folders = try await fixture.call("aria2.tellWaiting", 0, 100_000, ["dir"]).array ?? []
        for folder in Set(folders.compactMap { $0["dir"]?.string }) {
            #expect(folder == fixture.downloads || folder.hasPrefix(fixture.downloads + "/"))
        }
    }
}
