import FKRPC
import TestSupport
import Testing

@Suite("Room for connections")
struct ConnectionRoomTests {
    private typealias Place = ConnectionRoom.Place
    private static let second: Int64 = 1_000_000_000

    private static func place(
        _ number: UInt64, _ client: String = "a", isProven: Bool = false, hasRequest: Bool = false, age: Int64 = 5
    ) -> Place {
        Place(number: number, client: client, isProven: isProven, hasRequest: hasRequest, age: age * second)
    }

    private static let cases: [(name: String, others: [Place], most: Int, decision: ConnectionRoom.Decision)] = [
        ("there is room", [place(1)], 4, .keep),
        ("the oldest without a request ends", (1...4).map { place($0, "c\($0)") }, 4, .end(1)),
        ("one with a request stays", [place(1, "b", hasRequest: true), place(2, "c"), place(3, "d")], 3, .end(2)),
        (
            "one that may be sending its request stays", [place(1, "b", age: 0), place(2, "c"), place(3, "d")], 3,
            .end(2)
        ),
        (
            "a request alone does not protect", [place(1, "b", hasRequest: true), place(2, "c", isProven: true)], 2,
            .end(1)
        ),
        (
            "refused requests hold no place against one that may be sending its request",
            [place(1, hasRequest: true), place(2, hasRequest: true), place(3, age: 0)], 6, .end(1)
        ),
        (
            "of those that are young the one without a request ends",
            [place(1, "b", hasRequest: true, age: 0), place(2, "c", age: 0)], 2, .end(2)
        ),
        ("the secret protects", (1...4).map { place($0, "c\($0)", isProven: true) }, 4, .refuse),
        ("a client has half of the places", [place(1), place(2), place(3, "b")], 4, .end(1)),
        ("with the secret it has all", [place(1, isProven: true), place(2, isProven: true), place(3, "b")], 4, .keep),
    ]

    @Test("who makes room for a new connection", arguments: cases.indices) func decide(index: Int) {
        let one = Self.cases[index]
        #expect(
            ConnectionRoom.decide(Self.place(9, age: 0), among: one.others, most: one.most) == one.decision,
            "\(one.name)")
    }

    @Test("a client that holds every connection with a byte each keeps nobody out") func slowClients() async throws {
        let server = try await RPCProcess(["--no-secret"], descriptors: 64)
        let slow = try await offPool {
            try (0..<60).map { _ in
                let client = try RawClient(port: server.port)
                client.send("P")
                return client
            }
        }
        for _ in 0..<5 { #expect(try await server.call("aria2.getVersion")["version"] != nil) }
        withExtendedLifetime(slow) {}
        try await server.end()
    }
}
