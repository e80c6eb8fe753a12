import TestSupport
import Testing

@testable import FKEngine

/// Texts from servers and programs.
@Suite("Fuzzed answers of servers and programs") struct FuzzAnswerTests {
    private static let answers = [
        "{\"url\":\"http://h/a?b=c\",\"headers\":{\"X-A\":\"b\",\"Cookie\":null},\"path\":\"/a/b\",\"id\":\"x\",\"attempt\":2}",
        "{\"path\":\"/x\"}\n", "{}", " ",
    ]

    @Test("of middleware programs: usable, or a fault that can be shown", arguments: FuzzRun.shards)
    func programs(shard: Int) async throws {
        try await FuzzRun("program answers", usual: 10_000)(shard: shard, of: FuzzRun.shards.count) { random in
            var bytes = Array(random.pick(Self.answers).utf8)
            for _ in 0...random.below(3) {
                if random.oneIn(3) {
                    bytes.insert(contentsOf: NastyText.bytes(&random), at: random.below(bytes.count + 1))
                } else {
                    JSONMutation.apply(&bytes, &random)
                }
            }
            for stage in MiddlewareProgram.Stage.allCases {
                do throws(ProgramAnswer.Fault) {
                    let answer = try ProgramAnswer(bytes, stage)
                    if let url = answer.url, URLOrigin(url) == nil || URL(string: url) == nil {
                        return "the URL \(url)"
                    }
                    for (name, value) in answer.headers {
                        guard name.isFieldName, value.map(\.isFieldValue) ?? true else {
                            return "the header \(name)"
                        }
                    }
                    if let path = answer.path, path.utf8.first != 0x2f || path.utf8.contains(0) {
                        return "the path \(path)"
                    }
                    if stage != .request, answer.url != nil || !answer.headers.isEmpty { return "of another stage" }
                } catch {
                    if error.text.unicodeScalars.contains(where: \.isHidden) || error.text.utf8.count > 1_000 {
                        return "a fault that cannot be shown: \(error.text.debugDescription)"
                    }
                }
            }
            return nil
        }
    }

    private static let links = [
        "<http://m/a>; rel=duplicate; pri=1, <b>; rel=\"next duplicate\"; pri=\"2\"; geo=de",
        "</api/x?cursor=abc>; rel=\"next\"", "<a>;rel=x;;;=;a=\"\\\"\\\\\";b", "<>,,<",
    ]

    @Test("Link fields: every link has its target, in a time that grows with the text", arguments: FuzzRun.shards)
    func linkFields(shard: Int) async throws {
        try await FuzzRun("Link fields", usual: 20_000)(shard: shard, of: FuzzRun.shards.count) { random in
            var bytes = Array(random.pick(Self.links).utf8)
            for _ in 0...random.below(4) {
                switch random.below(3) {
                case 0: Mutation.apply(&bytes, with: Array(random.pick(Self.links).utf8), &random)
                case 1: bytes.insert(contentsOf: NastyText.bytes(&random), at: random.below(bytes.count + 1))
                default:
                    let piece = random.pick([
                        "<", ">", ";", ",", "=", "\"", "\\", "rel", " ", "pri=99999999999999999999",
                    ])
                    bytes.insert(contentsOf: piece.utf8, at: random.below(bytes.count + 1))
                }
            }
            let text = String(decoding: bytes, as: UTF8.self)
            let found = LinkField.parse([text, text])
            guard found.count <= 2 * text.utf8.count(where: { $0 == 0x3c }) else {
                return "\(found.count) links of \(text)"
            }
            for link in found {
                if link.target.utf8.contains(0x3e) { return "the target \(link)" }
                if link.relations.contains(where: { $0 != $0.lowercased() || $0.contains(" ") }) {
                    return "relations: \(link)"
                }
                _ = link.priority
            }
            return nil
        }
    }
}
