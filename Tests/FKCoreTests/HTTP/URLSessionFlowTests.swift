import Testing

@testable import FKTransport

@Suite("URLSession: how long a server is silent")
struct URLSessionFlowTests {
    /// The results of a check each second, for ten seconds, with ten seconds allowed.
    private func checks(_ flow: inout URLSessionFlow) -> [URLSessionFlow.Check] {
        (1...10).map { _ in flow.check(after: 1, silentLength: nil, allowed: 10) }
    }

    private let nineFine = [URLSessionFlow.Check](repeating: .fine, count: 9)

    @Test("the error says what is missing: the head, bytes, or enough of them")
    func texts() {
        var flow = URLSessionFlow()
        let head = checks(&flow)
        #expect(head == nineFine + [.silent("did not answer within", 10)])
        flow.answered(isAside: false)
        let nothing = checks(&flow)
        #expect(nothing == nineFine + [.silent("sent nothing for", 10)])
        flow.resume()
        flow.heard(15, enough: 16)
        let little = checks(&flow)
        #expect(little == nineFine + [.silent("sent hardly anything for", 10)])
    }

    @Test("enough bytes end a silence, and so does the end of a pause")
    func ends() {
        var flow = URLSessionFlow()
        flow.answered(isAside: false)
        #expect(flow.check(after: 9, silentLength: nil, allowed: 10) == .fine)
        flow.heard(8, enough: 16)
        flow.heard(8, enough: 16)
        #expect(flow.check(after: 9, silentLength: nil, allowed: 10) == .fine)
        flow.pause()
        #expect(flow.isPaused)
        flow.resume()
        #expect(!flow.isPaused)
        #expect(flow.check(after: 9, silentLength: nil, allowed: 10) == .fine)
    }

    @Test("a body that only explains a status is not waited for as long")
    func aside() {
        var flow = URLSessionFlow()
        flow.answered(isAside: true)
        let limit = SilenceWatch.asideSeconds
        #expect(flow.check(after: limit, silentLength: nil, allowed: 1_000) == .silent("sent nothing for", limit))
    }

    @Test("a redirect that Foundation does not report is handled after half a second, or at once if it is long")
    func unreported() {
        var flow = URLSessionFlow()
        #expect(flow.check(after: 0.25, silentLength: 10, allowed: 10) == .fine)
        #expect(flow.check(after: 0.25, silentLength: 10, allowed: 10) == .unreported(request: 0))
        var long = URLSessionFlow()
        let tooLong = URLSessionFlow.maxRedirectBody + 1
        #expect(long.check(after: 0, silentLength: tooLong, allowed: 10) == .unreported(request: 0))
        long.answered(isAside: false)
        #expect(long.check(after: 1, silentLength: tooLong, allowed: 10) == .fine)
    }
}
