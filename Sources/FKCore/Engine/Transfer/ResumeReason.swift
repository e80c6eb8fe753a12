import FKMiddleware

extension ResumeRules {
    /// The reason why a response cannot continue the stored bytes, for the task's history.
    package static func reason(_ head: ResponseHead, _ ask: RangeAsk, _ known: Known) -> String {
        let range = head["Content-Range"].flatMap(ContentRange.init)
        let there = FileVersion(head, source: "")
        if let old = known.length, let total = there.length, total != old {
            return "the file there has \(total.plural("byte")), the one begun has \(old)"
        }
        if head.status == 206, range?.total == nil, known.isOtherSource || known.length == nil {
            return "the length of the file there is not known"
        }
        switch known.joins(head) {
        case .refuted(by: .coding):
            func name(_ coding: String?) -> String { coding ?? "plain bytes" }
            return
                "the server sends \(name(head.contentCoding)), the part is of \(name(known.version.validator?.coding))"
        case .refuted: return "the file there is another one: its validators differ"
        case .proven, .unknown: break
        }
        if let range = range?.range, range.first != ask.start - ask.overlap {
            return "the server sent the bytes from \(range.first), not from \(ask.start - ask.overlap)"
        }
        if known.isOtherSource, known.joins(head) == .unknown, known.whenUnknown == .wholeFile {
            return "nothing proves that the file there is the one begun: it is fetched from its beginning"
        }
        return "the server's answer to a range request was not usable"
    }
}
