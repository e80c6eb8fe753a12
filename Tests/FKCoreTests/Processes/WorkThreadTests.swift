import TestSupport
import Testing

@Suite("Threads that can be waited for")
struct WorkThreadTests {
    /// Libraries clean up a thread behind its last line, and `exit` must not come before that.
    @Test("join returns behind the end of the thread, what libraries do there included") func join() async throws {
        final class Cleanup {
            let log: Observed<[String]>
            let joining: DispatchSemaphore
            init(_ log: Observed<[String]>, _ joining: DispatchSemaphore) { (self.log, self.joining) = (log, joining) }
            deinit {
                for _ in 0..<2 { joining.wait() }
                // A join that does not wait returns while this thread gives its turns away.
                for _ in 0..<1_000 { sched_yield() }
                log.update { $0.append("cleaned up") }
            }
        }
        let log = Observed<[String]>([])
        let joining = DispatchSemaphore(value: 0)
        let thread = WorkThread()
        thread.start(name: "fk.test") {
            // Foundation drops this dictionary in the destructor of the thread's own storage.
            Thread.current.threadDictionary["cleanup"] = Cleanup(log, joining)
        }
        let join = { @Sendable () -> Void in
            joining.signal()
            thread.join()
            log.update { $0.append("joined") }
        }
        // Each of two who wait at the same time.
        async let other: Void = offPool(join)
        try await offPool(join)
        try await other
        #expect(log.value == ["cleaned up", "joined", "joined"])
    }

    @Test("it knows itself, has a name, and waiting for itself ends at once") func itself() async throws {
        let seen = Observed<[Bool]>([])
        let thread = WorkThread()
        #expect(!thread.isCurrent)
        thread.start(name: "fk.test", stackSize: 1 << 20) {
            thread.join()
            let name = (try? String(contentsOfFile: "/proc/thread-self/comm", encoding: .utf8)) ?? "fk.test"
            let isCurrent = thread.isCurrent
            seen.update { $0 = [isCurrent, name.hasPrefix("fk.test")] }
        }
        #expect(!thread.isCurrent)
        try await offPool {
            thread.join()
            // A second time there is nothing to wait for.
            thread.join()
        }
        #expect(seen.value == [true, true])
    }

    @Test("what it was started with is let go at its end") func releases() async throws {
        final class Thing: Sendable {}
        let thread = WorkThread()
        weak var thing: Thing?
        do {
            let made = Thing()
            thing = made
            thread.start(name: "fk.test") { _ = made }
        }
        try await offPool { thread.join() }
        #expect(thing == nil)
    }
}
