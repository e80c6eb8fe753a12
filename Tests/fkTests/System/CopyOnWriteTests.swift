import TestSupport
import Testing

@testable import fk

/// The work path is on a full disk where a write over old bytes needs room as well.
@Suite("A full copy-on-write disk")
final class CopyOnWriteTests: ServedSuite {

    @Test(
        "on a full btrfs the counters end no process: tasks wait for room, and go on when there is some",
        .enabled(if: TinyDisk.isCopyOnWritePossible, "\(TinyDisk.copyOnWriteReason)"), arguments: [1, 4])
    func waitsForRoom(connections: Int) async throws {
        let disk = try TinyDisk.copyOnWrite()
        let body = Bytes.pattern(count: 24_000_000)
        let gate = Gate()
        server.route("/a") { request in
            FaultResponse.ranged(body, for: request, etag: "\"1\"").stalling(
                at: request.index == 0 ? 2_000_000 : 0, until: gate)
        }
        let work = WorkPath("\(disk.path)/work")
        let running = try sandbox.start(
            [
                "get", server.url("/a"), "-d", disk.path, "--retry", "100", "-x", "\(connections)", "--min-free", "0",
                "--work-path", work.root,
            ])
        let isBegun = try await eventually { () -> Bool? in
            ((try? StoreReader(work).records())?.first?.received ?? 0) >= 2_000_000 ? true : nil
        }
        #expect(isBegun == true)
        try disk.fill()
        gate.open()
        #expect(try await running.says("no space"))
        try disk.clear()
        let end = await running.end()
        #expect(end.status == 0, "\(end.errors)")
        #expect(try disk.bytes("a") == body)
    }
}
