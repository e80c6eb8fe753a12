import TestSupport
import Testing

/// A task that a list has bound to an entity tag.
@Suite("Files that are bound to an entity tag") struct EntityTagTests {
    private static let known = ResumeRules.Known(entityTag: "\"v1\"")

    private static func head(_ status: Int, _ fields: KeyValuePairs<String, String> = [:]) -> ResponseHead {
        ResponseHead(status: status, fields: fields.map { .init($0.key, $0.value) }, url: "http://e.com/a")
    }

    @Test(
        "what an answer means",
        arguments: [
            (200, "\"v1\"", false), (200, "W/\"v1\"", false), (200, nil, false), (200, "\"v2\"", true),
            (206, "\"v2\"", true),
            (206, "\"v1\"", false), (412, nil, true), (404, "\"v2\"", false), (503, nil, false),
        ] as [(Int, String?, Bool)])
    func answers(status: Int, tag: String?, isOther: Bool) {
        var head = Self.head(status, ["Content-Length": "5", "Content-Range": "bytes 0-4/5"])
        if let tag { head.fields.append(.init("ETag", tag)) }
        let ask = status == 206 ? RangeAsk(start: 0, usesRange: true) : RangeAsk()
        let decision = ResumeRules.decide(head: head, ask: ask, known: Self.known, segments: 1)
        guard case .refuse(let error) = decision else { return #expect(!isOther, "\(decision)") }
        #expect((error.code == .changedOnServer) == isOther, "\(error)")
        #expect(!isOther || !error.isRetryable && error.remedy == .readListAgain && error.status == nil)
    }

    @Test("without a tag any file is accepted") func free() {
        let head = Self.head(200, ["Content-Length": "5", "ETag": "\"v2\""])
        #expect(ResumeRules.decide(head: head, ask: RangeAsk(), known: .init(), segments: 1) == .startOver(total: 5))
        if case .refuse(let error) = ResumeRules.decide(
            head: Self.head(412), ask: RangeAsk(), known: .init(), segments: 1)
        {
            #expect(error.code == .httpStatus)
        }
    }
}
