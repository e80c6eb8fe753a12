import FKMiddleware
import Foundation

#if canImport(Glibc)
    import Glibc
#elseif canImport(Musl)
    import Musl
#else
    import Darwin
#endif

/// Watches a test from its beginning until the last reference to this object is gone. A test that takes too long is named on
/// standard error, with what it says about itself and where each thread of the process stands: a hang under load may not come
/// back when somebody looks for it.
///
/// The limit is 120 s, or `FK_TEST_PATIENCE` seconds; 0 switches it off. The threads are shown once in a process: a debugger stops
/// all of them for some ten seconds, which makes other tests late.
package final class TestWatch: Sendable {
    private static let list = Locked(WatchList())
    private static let patience = ProcessInfo.processInfo.environment["FK_TEST_PATIENCE"].flatMap(Double.init) ?? 120
    private static let isRunning: Bool = {
        guard patience > 0 else { return false }
        Thread.detachNewThread {
            while true {
                // No test waits here: this thread looks at all of them once a second.
                sleep(1)
                let late = list.withLock { $0.overdue(now(), patience: patience) }
                if !late.isEmpty { report(late) }
            }
        }
        return true
    }()

    private static let hasShownThreads = Locked(false)

    private let number: Int

    /// - Parameter details: what the test has seen so far; called on a thread of its own.
    package init(_ test: String, details: @escaping @Sendable () -> String) {
        number = Self.list.withLock { $0.add(test, now: Self.now(), details: details) }
        _ = Self.isRunning
    }

    deinit { Self.list.withLock { $0.remove(number) } }

    private static func now() -> Double { Double(DispatchTime.now().uptimeNanoseconds) / 1e9 }

    private static func report(_ late: [WatchList.Entry]) {
        var text = "\n--- Tests that do not end ---\n"
        for entry in late { text += "\(entry.test), \(Int(now() - entry.begun)) s: \(entry.details())\n" }
        let isFirst = hasShownThreads.withLock { shown in
            defer { shown = true }
            return !shown
        }
        if isFirst {
            text += "--- Where the threads stand ---\n\(ThreadStacks.text())\n"
        }
        text += "--- End ---\n"
        FileHandle.standardError.write(Data(text.utf8))
    }
}

/// The tests that are watched, and when each is reported next. A pure value.
package struct WatchList: Sendable {
    package struct Entry: Sendable {
        package var test: String
        /// Seconds of any clock.
        package var begun: Double
        package var details: @Sendable () -> String
        /// Times the patience it has been reported at.
        var reported = 0.0
    }

    private var entries: [Int: Entry] = [:]
    private var last = 0

    package init() {}

    package mutating func add(_ test: String, now: Double, details: @escaping @Sendable () -> String) -> Int {
        last += 1
        entries[last] = Entry(test: test, begun: now, details: details)
        return last
    }

    package mutating func remove(_ number: Int) { entries[number] = nil }

    /// The tests to report, the oldest first: each once it has taken `patience` seconds, and then twice, four times as long.
    package mutating func overdue(_ now: Double, patience: Double) -> [Entry] {
        var result: [Entry] = []
        for (number, entry) in entries where now - entry.begun >= patience * max(1, entry.reported * 2) {
            entries[number]?.reported = max(1, entry.reported * 2)
            result.append(entry)
        }
        return result.sorted { $0.begun < $1.begun }
    }
}

/// Where each thread of this process stands, as a debugger shows it. Without one, and where a process may not attach to its
/// parent, what the kernel says.
package enum ThreadStacks {
    package static func text() -> String {
        let pid = "\(getpid())"
        let debuggers = [
            ["eu-stack", "-p", pid], ["gdb", "-nx", "-batch", "-p", pid, "-ex", "thread apply all backtrace 40"],
            ["lldb", "--batch", "-p", pid, "-o", "thread backtrace all"], ["sample", pid, "1"],
        ]
        for words in debuggers where Program.find(words[0]) != nil {
            if let text = try? Program.run("timeout", ["60"] + words), text.contains("#0") || words[0] == "sample" {
                // Debuggers first tell of themselves.
                let lines = text.split(separator: "\n")
                let places = lines.drop { line in !["Thread ", "TID ", "* thread"].contains(where: line.hasPrefix) }
                return places.isEmpty ? text : places.joined(separator: "\n")
            }
        }
        return kernelText()
    }

    /// A name, a state and a place in the kernel for each thread; empty where there is no `/proc`.
    package static func kernelText() -> String {
        let threads = (try? FileManager.default.contentsOfDirectory(atPath: "/proc/self/task")) ?? []
        return threads.sorted().map { thread in
            let facts = ["comm", "wchan", "syscall"].map { name in
                let text = try? String(contentsOfFile: "/proc/self/task/\(thread)/\(name)", encoding: .utf8)
                return text?.trimmingCharacters(in: .whitespacesAndNewlines) ?? "-"
            }
            return "\(thread) \(facts.joined(separator: ", "))"
        }.joined(separator: "\n")
    }
}
