/// A fault of what a source says, without a final full stop.
struct AnswerFault: Error, Sendable, Hashable {
    let reason: String

    init(_ reason: String) { self.reason = reason }
}
