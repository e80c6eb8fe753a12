import FKCore
import FKMiddleware
import Foundation

/// Looks from outside at the process that runs tasks. Other systems than Linux tell the rates alone.
struct EngineProbe {
    let reader: StoreReader
    let pid: Int32
    let limits: LimitsReport?

    /// The seconds since the first look, with the running tasks as they were then.
    private typealias Look = (seconds: Double, tasks: [TaskID: TaskRecord])

    /// The number of samples of a measurement: enough for two portions of a server that sends one each second.
    private static let looks = 22
    private static let pause = Duration.milliseconds(100)

    /// Measures for two seconds or so. Returns the measures of each task that still runs.
    func measure(_ ids: [TaskID]) async throws -> [TaskID: Bottleneck.Measures] {
        let running = try reader.records { $0.state == .action }.map(\.id)
        let begin = ContinuousClock.now
        let first = (threads: threads(), sockets: SocketTable.connections(of: pid))
        var waits = 0
        var looks: [Look] = []
        while true {
            let records = reader.records(running).map { ($0.id, $0) }
            looks.append(((ContinuousClock.now - begin) / .seconds(1), Dictionary(records) { $1 }))
            guard looks.count <= Self.looks else { break }
            try await Task.sleep(for: Self.pause)
            if threads().contains(where: \.value.isWaiting) { waits += 1 }
        }
        var shared = Bottleneck.Measures()
        if let before = first.sockets {
            let seconds = (ContinuousClock.now - begin) / .seconds(1)
            shared.diskWait = Double(waits) / Double(Self.looks)
            let busy = threads().map { id, thread in
                let old = first.threads[id] ?? thread
                return ((thread.ran - old.ran) / seconds, (thread.queued - old.queued) / seconds)
            }
            shared.processor = busy.max { $0.0 + $0.1 < $1.0 + $1.1 }
            shared.pressure = Self.pressure()
            shared.connections = SocketTable.connections(of: pid)?.map { inode, last in
                var connection = last
                connection.packets -= before[inode]?.packets ?? 0
                connection.disordered -= before[inode]?.disordered ?? 0
                return connection
            }
        }
        let notice = reader.workPath.waitNotice
        var found: [TaskID: Bottleneck.Measures] = [:]
        for id in ids {
            guard let now = looks.last?.tasks[id], now.state == .action else { continue }
            var measures = shared
            measures.rates = Self.rates(now, looks)
            measures.isUnanswered = now.received == 0 && now.expected == nil
            measures.isWhole = now.expected.map { now.received >= $0 } ?? false
            measures.program = program(of: id)
            measures.limits = own(now, looks)
            measures.policy = notice.hosts[now.nextURL.site]?.policy
            found[id] = measures
        }
        return found
    }

    /// The rate of a number of bytes that grows in bursts: that from the first burst to the last one, and to the end
    /// if nothing has come for longer than between two bursts.
    static func rate(_ looks: [(seconds: Double, bytes: Int64)]) -> Double {
        guard let first = looks.first, let last = looks.last, last.seconds > first.seconds else { return 0 }
        let bursts = zip(looks, looks.dropFirst()).filter { $0.bytes < $1.bytes }.map(\.1)
        guard let begin = bursts.first, var end = bursts.last, bursts.count > 1 else {
            return Double(max(0, last.bytes - first.bytes)) / (last.seconds - first.seconds)
        }
        let pause = zip(bursts, bursts.dropFirst()).map { $1.seconds - $0.seconds }.max() ?? 0
        if last.seconds - end.seconds > pause { end.seconds = last.seconds }
        return Double(end.bytes - begin.bytes) / (end.seconds - begin.seconds)
    }

    /// The rates of the parts of the file that were being received, those that have ended left out.
    private static func rates(_ now: TaskRecord, _ looks: [Look]) -> [Double] {
        let parts = now.ranges.filter { $0.position < $0.end ?? .max }.map { range in
            rate(
                looks.compactMap { look in
                    let old = look.tasks[now.id]?.ranges.first { $0.start == range.start }
                    return old.map { (look.seconds, $0.position) }
                })
        }.filter { $0 > 0 }
        guard parts.isEmpty else { return parts }
        let all = rate(looks.compactMap { look in look.tasks[now.id].map { (look.seconds, $0.received) } })
        return all > 0 ? [all] : []
    }

    /// The limits that apply to the task, each with the rate of the tasks that share it.
    private func own(_ task: TaskRecord, _ looks: [Look]) -> [Bottleneck.Measures.Limit] {
        func rate(_ isMet: (TaskRecord) -> Bool) -> Double {
            Self.rate(
                looks.map { look in
                    (look.seconds, look.tasks.values.reduce(0) { $0 + (isMet($1) ? $1.received : 0) })
                })
        }
        var found: [Bottleneck.Measures.Limit] = []
        func add(_ name: String, _ limit: Int64?, _ isMet: (TaskRecord) -> Bool) {
            if let limit, limit > 0 { found.append(.init(name: name, rate: limit, used: rate(isMet))) }
        }
        add("that of the task", task.task.optionsBox?.value.rateLimit) { $0.id == task.id }
        add(limits?.window.map { "fk limit, daily \($0.text)," } ?? "fk limit", limits?.rate) { _ in true }
        add("that of the application", limits?.configured) { _ in true }
        for barrel in limits?.barrels ?? [] where task.barrels.containsExactly(barrel.name) {
            add("that of the barrel \(barrel.name)", barrel.rate) { $0.barrels.containsExactly(barrel.name) }
        }
        // The tasks of a command are unknown here: with one command they are all.
        for command in limits?.commands ?? [] where (limits?.commands.count ?? 0) == 1 {
            add("--limit-rate", command.rate) { _ in true }
        }
        return found
    }

    // MARK: /proc

    private struct ThreadState {
        /// The seconds that it ran, and those that it was ready to run and waited for a processor.
        var ran = 0.0
        var queued = 0.0
        /// True if it waits for a disk.
        var isWaiting: Bool
    }

    private func threads() -> [String: ThreadState] {
        let folder = "/proc/\(pid)/task"
        var found: [String: ThreadState] = [:]
        for id in (try? FileManager.default.contentsOfDirectory(atPath: folder)) ?? [] {
            // The name in brackets may have spaces.
            guard let text = Self.text("\(folder)/\(id)/stat"), let end = text.lastIndex(of: ")") else { continue }
            var thread = ThreadState(isWaiting: text[end...].hasPrefix(") D"))
            let times = Self.text("\(folder)/\(id)/schedstat")?.split(separator: " ").compactMap { Double($0) } ?? []
            if times.count > 1 { (thread.ran, thread.queued) = (times[0] / 1e9, times[1] / 1e9) }
            found[id] = thread
        }
        return found
    }

    /// The program of a middleware that the engine has started for the task.
    private func program(of id: TaskID) -> (name: String, seconds: Double)? {
        for process in (try? FileManager.default.contentsOfDirectory(atPath: "/proc")) ?? [] where Int32(process) != nil
        {
            guard let stat = Self.text("/proc/\(process)/stat"), let end = stat.lastIndex(of: ")") else { continue }
            let words = stat[end...].split(separator: " ")
            guard words.count > 20, words[2] == "\(pid)",
                let variables = Self.text("/proc/\(process)/environ")?.split(separator: "\0"),
                variables.contains(where: { $0 == "FK_TASK_ID=\(id.hex)" }),
                let line = Self.text("/proc/\(process)/cmdline")?.split(separator: "\0").prefix(2), !line.isEmpty
            else { continue }
            let uptime = Self.text("/proc/uptime")?.split(separator: " ").first.flatMap { Double($0) } ?? 0
            let started = (Double(words[20]) ?? 0) / Double(sysconf(Int32(_SC_CLK_TCK)))
            return (line.map { String($0).lastPathPart }.joined(separator: " "), max(0, uptime - started))
        }
        return nil
    }

    /// The share of the last ten seconds that some process waited for a disk.
    private static func pressure() -> Double? {
        guard let line = text("/proc/pressure/io")?.split(separator: "\n").first,
            let word = line.split(separator: " ").first(where: { $0.hasPrefix("avg10=") })
        else { return nil }
        return Double(word.dropFirst(6)).map { $0 / 100 }
    }

    /// The contents of a file of the system, whose length is unknown before.
    private static func text(_ path: String) -> String? {
        FileManager.default.contents(atPath: path).map { String(decoding: $0, as: UTF8.self) }
    }
}
