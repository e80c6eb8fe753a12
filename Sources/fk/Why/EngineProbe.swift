import FKCore
import FKMiddleware
import Foundation

#if canImport(Glibc)
    import Glibc
#elseif canImport(Darwin)
    import Darwin
#endif

/// Looks from outside at the process that runs a task. Other systems than Linux tell the rates alone.
struct EngineProbe {
    let reader: StoreReader
    let pid: Int32
    let limits: LimitsReport?

    /// The looks of a measurement.
    private static let looks = 12
    private static let pause = Duration.milliseconds(100)

    /// Measures for a second or so.
    ///
    /// - Returns: nil if the task has ended meanwhile.
    func measure(_ record: TaskRecord) async throws -> Bottleneck.Measures? {
        var measures = Bottleneck.Measures()
        let begin = ContinuousClock.now
        let others = try reader.records { $0.state == .action }
        let first = (threads: threads(), sockets: SocketTable.connections(of: pid))
        var waits = 0
        for _ in 0..<Self.looks {
            try await Task.sleep(for: Self.pause)
            if threads().contains(where: { $0.value.isWaiting }) { waits += 1 }
        }
        let seconds = max(0.1, (ContinuousClock.now - begin) / .seconds(1))
        guard let now = try? reader.record(record.id), now.state == .action else { return nil }
        measures.rates = Self.rates(record, now, seconds)
        measures.isWhole = now.expected.map { now.received >= $0 } ?? false
        measures.program = program(of: record.id)
        measures.limits = own(others.map { ($0, reader: try? reader.record($0.id)) }, now, seconds)
        guard let first = first.sockets.map({ (first.threads, $0) }) else { return measures }
        measures.diskWait = Double(waits) / Double(Self.looks)
        let ticks = Double(sysconf(Int32(_SC_CLK_TCK)))
        measures.processor = threads().map { id, thread in
            Double(thread.ticks - (first.0[id]?.ticks ?? thread.ticks)) / ticks / seconds
        }.max()
        measures.pressure = Self.pressure()
        measures.connections = SocketTable.connections(of: pid)?.map { inode, last in
            var connection = last.connection
            connection.packets -= first.1[inode]?.connection.packets ?? 0
            connection.disordered -= first.1[inode]?.connection.disordered ?? 0
            return connection
        }
        return measures
    }

    /// The rates of the parts of the file that were being received, those that have ended left out.
    private static func rates(_ before: TaskRecord, _ now: TaskRecord, _ seconds: Double) -> [Double] {
        let parts = now.ranges.filter { $0.position < $0.end ?? .max }.compactMap { range -> Double? in
            guard let old = before.ranges.first(where: { $0.start == range.start }), range.position > old.position
            else {
                return nil
            }
            return Double(range.position - old.position) / seconds
        }
        let all = Double(max(0, now.received - before.received)) / seconds
        return parts.isEmpty && all > 0 ? [all] : parts
    }

    /// The limits that apply to the task, each with the rate of the tasks that share it.
    private func own(
        _ running: [(before: TaskRecord, reader: TaskRecord?)], _ task: TaskRecord, _ seconds: Double
    ) -> [Bottleneck.Measures.Limit] {
        func rate(_ isMet: (TaskRecord) -> Bool) -> Double {
            running.reduce(0) { sum, pair in
                guard let now = pair.reader, isMet(now) else { return sum }
                return sum + Double(max(0, now.received - pair.before.received)) / seconds
            }
        }
        var found: [Bottleneck.Measures.Limit] = []
        func add(_ name: String, _ limit: Int64?, _ isMet: (TaskRecord) -> Bool) {
            if let limit, limit > 0 { found.append(.init(name: name, rate: limit, used: rate(isMet))) }
        }
        add("that of the task", task.task.option { $0.rateLimit }) { $0.id == task.id }
        add("fk limit", limits?.rate) { _ in true }
        add("that of the application", limits?.configured) { _ in true }
        for barrel in limits?.barrels ?? [] where task.barrels.containsExactly(barrel.name) {
            add("that of the barrel \(barrel.name)", barrel.rate) { $0.barrels.containsExactly(barrel.name) }
        }
        // Which tasks belong to a command is not told: with one command they are all.
        for command in limits?.commands ?? [] where (limits?.commands.count ?? 0) == 1 {
            add("--limit-rate", command.rate) { _ in true }
        }
        return found
    }

    // MARK: /proc

    private struct EngineThread {
        var ticks: Int64
        /// True if it waits for a disk.
        var isWaiting: Bool
    }

    private func threads() -> [String: EngineThread] {
        let folder = "/proc/\(pid)/task"
        var found: [String: EngineThread] = [:]
        for id in (try? FileManager.default.contentsOfDirectory(atPath: folder)) ?? [] {
            // The name in brackets may have spaces.
            guard let text = Self.text("\(folder)/\(id)/stat"), let end = text.lastIndex(of: ")") else { continue }
            let words = text[end...].split(separator: " ")
            guard words.count > 13, let user = Int64(words[12]), let system = Int64(words[13]) else { continue }
            found[id] = EngineThread(ticks: user + system, isWaiting: words[1] == "D")
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
                let name = Self.text("/proc/\(process)/cmdline")?.split(separator: "\0").first
            else { continue }
            let uptime = Self.text("/proc/uptime")?.split(separator: " ").first.flatMap { Double($0) } ?? 0
            let started = (Double(words[20]) ?? 0) / Double(sysconf(Int32(_SC_CLK_TCK)))
            return (String(name).lastPathPart, max(0, uptime - started))
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

    private static func text(_ path: String) -> String? {
        (try? FileIO.contents(of: path, limit: 1 << 20)).map { String(decoding: $0, as: UTF8.self) }
    }
}
