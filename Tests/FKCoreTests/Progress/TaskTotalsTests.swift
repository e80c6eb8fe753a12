import FKMiddleware
import TestSupport
import Testing

@testable import FKModel

@Suite("Sums over tasks") struct TaskTotalsTests {
    private typealias Share = TaskTotals.Share

    @Test("the sums that changes lead to are those of a plain count, also in some states") func likePlain() {
        var random = SeededRandom(seed: 473)
        for _ in 0..<40 {
            var totals = TaskTotals()
            var shares = [Share](repeating: Share(), count: 12)
            for _ in 0..<60 {
                let place = Int.random(in: 0..<shares.count, using: &random)
                let new = Share(
                    received: Int64.random(in: 0..<100, using: &random),
                    expected: Bool.random(using: &random) ? Int64.random(in: 0..<200, using: &random) : nil,
                    state: Bool.random(using: &random) ? DownloadState.allCases.randomElement(using: &random) : nil)
                totals.replace(shares[place], by: new)
                shares[place] = new
            }
            expect(totals, of: shares)
            expect(totals.where { !$0.isSettled }, of: shares.filter { $0.state?.isSettled == false })
            expect(totals.of([.cancel, .error]), of: shares.filter { $0.state == .cancel || $0.state == .error })
            for share in shares { totals.remove(share) }
            #expect(totals == TaskTotals() && totals.states.isEmpty)
        }
    }

    private func expect(_ totals: TaskTotals, of all: [Share]) {
        let shares = all.filter { $0.state != nil }
        #expect(totals.count == shares.count)
        #expect(totals.received == shares.reduce(0) { $0 + $1.received })
        #expect(totals.expected == shares.reduce(0) { $0 + max($1.expected ?? 0, $1.received) })
        let unknown = shares.filter { $0.expected == nil && $0.state != .complete && $0.state != .unknown }
        #expect(totals.unknownLengths == unknown.count)
        #expect(totals.isExpectedKnown == (!shares.isEmpty && unknown.isEmpty))
        #expect(totals.states == Dictionary(grouping: shares) { $0.state! }.mapValues(\.count))
    }

    @Test("a sum of lengths is missing only while nothing is known of any") func bytes() {
        var totals = TaskTotals()
        #expect(totals.bytes == ByteCount(received: 0, expected: nil, isLowerBound: true))
        totals.add(Share(state: .idle))
        #expect(totals.bytes == ByteCount(received: 0, expected: nil, isLowerBound: true))
        totals.add(Share(received: 3, state: .action))
        #expect(totals.bytes == ByteCount(received: 3, expected: 3, isLowerBound: true))
        totals.replace(Share(state: .idle), by: Share(expected: 0, state: .idle))
        totals.replace(Share(received: 3, state: .action), by: Share(received: 9, state: .complete))
        #expect(totals.bytes == ByteCount(received: 9, expected: 9))
    }
}
