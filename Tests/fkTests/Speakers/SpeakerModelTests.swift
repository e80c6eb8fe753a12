import TestSupport
import Testing

@Suite("What may be in force after a word")
struct SpeakerModelTests {
    private static let before = InForce(digest: "aa", orders: ["proxy": "p", "x-api-key": "k"], priority: 3)

    private func findings(_ speaker: Speaker, _ said: InForce, _ after: InForce, failed: Bool = false) -> [String] {
        SpeakerModel.judge(Self.before, speaker, said, after, failed: failed).map(\.description)
    }

    @Test("a call takes nothing away and adds what it names")
    func call() {
        #expect(findings(.call, InForce(), Self.before).isEmpty)
        #expect(findings(.call, InForce(), InForce(digest: "aa", orders: ["proxy": "p"], priority: 3)).count == 1)
        #expect(findings(.call, InForce(), InForce()).count == 4)
        var after = Self.before
        after.orders["max-size"] = "7"
        #expect(findings(.call, InForce(orders: ["max-size": "7"]), after).isEmpty)
        #expect(findings(.call, InForce(), after).count == 1)
        #expect(findings(.call, InForce(orders: ["max-size": "7"]), Self.before).count == 1)
    }

    @Test("a command replaces orders and keeps the digest; another one is refused, unless the same list has it now")
    func command() {
        let said = InForce(orders: ["proxy": "q"])
        #expect(findings(.command, said, InForce(digest: "aa", orders: ["proxy": "q"])).isEmpty)
        #expect(findings(.command, said, InForce(orders: ["proxy": "q"])).first?.hasPrefix("lostWord: digest") == true)
        let stale = InForce(digest: "aa", orders: ["proxy": "q", "x-api-key": "k"])
        #expect(findings(.command, said, stale).first?.hasPrefix("staleWord: x-api-key") == true)
        #expect(findings(.command, InForce(digest: "bb"), InForce(digest: "aa")).isEmpty)
        #expect(findings(.command, InForce(digest: "bb"), InForce(digest: "bb")).count == 1)
        let renewed = SpeakerModel.judge(
            Self.before, .command, InForce(digest: "bb"), InForce(digest: "bb"), failed: false, renews: true)
        #expect(renewed.isEmpty)
        #expect(findings(.command, InForce(digest: "bb"), Self.before, failed: true).isEmpty)
        #expect(findings(.command, InForce(digest: "bb"), InForce(), failed: true).count == 1)
    }

    @Test("a list of a server gives a digest where there is none, and no order")
    func server() {
        let said = InForce(digest: "bb", orders: ["proxy": "evil"])
        #expect(findings(.server, said, Self.before).isEmpty)
        #expect(findings(.server, said, InForce(digest: "aa")).isEmpty)
        #expect(findings(.server, said, InForce(digest: "bb")).count == 1)
        var after = Self.before
        after.orders["proxy"] = "evil"
        #expect(findings(.server, said, after).first?.hasPrefix("listOrders: proxy") == true)
        #expect(SpeakerModel.judge(nil, .server, said, InForce(digest: "bb"), failed: false).isEmpty)
    }
}
