import Foundation
import TestSupport
import Testing

@Suite("Tests: the watch over tests that do not end")
struct TestWatchTests {
    @Test("a test is reported once it has taken too long, and then less and less often")
    func overdue() {
        var list = WatchList()
        let first = list.add("first", now: 0) { "held" }
        let second = list.add("second", now: 10) { "" }
        var reports: [Int: [String]] = [:]
        for now in 0...100 {
            if now == 50 { list.remove(second) }
            let late = list.overdue(Double(now), patience: 20)
            if !late.isEmpty { reports[now] = late.map(\.test) }
        }
        #expect(reports == [20: ["first"], 30: ["second"], 40: ["first"], 80: ["first"]])
        list.remove(first)
        #expect(list.overdue(1e6, patience: 20).isEmpty)
    }

    @Test(
        "without a debugger the kernel says where the threads stand",
        .enabled(if: FileManager.default.fileExists(atPath: "/proc/self/task")))
    func kernel() {
        #expect(ThreadStacks.kernelText().split(separator: "\n").contains { $0.hasPrefix("\(getpid()) ") })
    }
}
