import FKMiddleware
import Foundation

/// Named groups of tasks. The barrel file is the truth about membership; a task's record repeats it for display.
extension Engine {
    func createBarrel(_ name: String, options: BarrelOptions) throws -> String {
        try BarrelName.validate(name)
        try options.options?.validate()
        if FileManager.default.fileExists(atPath: workPath.barrelPath(name)) {
            let barrel = try openBarrel(name, creating: false)
            var options = options
            options.rateLimit = options.rateLimit ?? barrel.record.options.rateLimit
            barrel.record.options = options
            barrel.isDirty = true
            save(barrel)
            return "barrel \(name) is there already: its settings were replaced"
        }
        let barrel = try openBarrel(name, creating: true)
        barrel.record.options = options
        barrel.isDirty = true
        save(barrel)
        return "barrel \(name) created"
    }

    /// - Throws: `.notFound` when there is no such barrel and `creating` is false.
    func openBarrel(_ name: String, creating: Bool) throws -> Barrel {
        guard mayWrite else { return Barrel(record: try BarrelFile.load(name, in: workPath)) }
        if let barrel = barrels[name] { return barrel }
        try BarrelName.validate(name)
        let record: BarrelRecord
        do {
            record = try BarrelFile.load(name, in: workPath)
        } catch let error as DownloadError where error.code == .notFound && creating {
            record = BarrelRecord(name: name, created: clock.date)
            try BarrelFile.save(record, in: workPath)
        } catch let error as DownloadError where error.code == .corruptInfo {
            let path = workPath.barrelPath(name)
            let report = Quarantine.move(path, in: workPath, because: error)
            problems.append(report.message)
            throw report
        }
        let barrel = Barrel(record: record)
        barrels[name] = barrel
        return barrel
    }

    func join(_ entry: TaskEntry, _ barrel: Barrel) {
        let name = barrel.record.name
        if !entry.record.barrels.containsExactly(name) {
            entry.record.barrels.append(name)
            write(entry)
        }
        if barrel.insert(entry.id, url: entry.record.task.url) {
            barrel.replace(TaskEntry.Account(), by: entry.accounted)
        }
        // It shares the barrel's limit from now on.
        entry.attempt?.limits.replace(with: limiters(for: entry))
    }

    /// Makes existing tasks members as well; they stay what they are.
    func join(_ selectors: [TaskSelector], barrelNamed name: String) throws -> Int {
        try checkOpen()
        let barrel = try openBarrel(name, creating: true)
        var count = 0
        for entry in try selectors.flatMap({ try find($0) }) where !barrel.memberIDs.contains(entry.id) {
            join(entry, barrel)
            count += 1
        }
        save(barrel)
        return count
    }

    func leave(_ entry: TaskEntry, barrelNamed name: String) {
        entry.record.barrels.removeAll { $0.isExactly(name) }
        guard let barrel = try? openBarrel(name, creating: false) else { return }
        if barrel.remove(entry.id) { barrel.replace(entry.accounted, by: TaskEntry.Account()) }
        entry.attempt?.limits.replace(with: limiters(for: entry))
        entry.attempt?.lanes.forEach { $0.operation?.resume() }
        save(barrel)
    }

    func remove(_ urls: [String], fromBarrel name: String) throws -> String {
        try checkOpen()
        let barrel = try openBarrel(name, creating: false)
        var removed = 0
        for text in urls {
            let url = try URLNormalizer.normalize(text)
            for member in barrel.record.members where member.url.isExactly(url) || member.id.hex == text {
                guard let entry = try find(member.id) else {
                    _ = barrel.remove(member.id)
                    removed += 1
                    continue
                }
                leave(entry, barrelNamed: name)
                write(entry)
                removed += 1
            }
        }
        save(barrel)
        endBarrelSequences(name)
        guard removed > 0 else { throw DownloadError(.notFound, "None of these URLs is in barrel \(name).") }
        return "\(removed) removed from barrel \(name)"
    }

    func deleteBarrel(_ name: String) throws -> String {
        try checkOpen()
        let barrel = try openBarrel(name, creating: false)
        let listeners = observers.barrels.filter { $0.name.isExactly(name) }
        let info = listeners.isEmpty ? nil : try barrelInfo(name)
        for id in barrel.members {
            guard let entry = try find(id) else { continue }
            entry.record.barrels.removeAll { $0.isExactly(name) }
            write(entry)
        }
        barrels[name] = nil
        barrelLimiters[name] = nil
        limitsChanged()
        try BarrelFile.delete(name, in: workPath)
        for listener in listeners { tell(listener, info) }
        endListeners(observers.removeBarrel(name))
        let kept =
            switch barrel.members.count {
            case 0: "it had no tasks"
            case 1: "its task was kept"
            case let count: "its \(count) tasks were kept"
            }
        return "barrel \(name) deleted; \(kept)"
    }

    func save(_ barrel: Barrel) {
        guard barrel.isDirty || barrel.isCounted, mayWrite else { return }
        do {
            if barrel.isCounted {
                barrel.record.sums = BarrelSums(
                    complete: barrel.states[.complete] ?? 0, error: barrel.states[.error] ?? 0,
                    received: barrel.received, expected: barrel.expected)
            }
            try BarrelFile.save(barrel.record, in: workPath)
            barrel.isDirty = false
        } catch {
            problems.append("Barrel \(barrel.record.name) could not be saved: \(error)")
        }
    }

    /// The sum of a barrel now.
    package func barrelInfo(_ name: String) throws -> BarrelInfo {
        let barrel = try openBarrel(name, creating: false)
        if !barrel.isCounted {
            barrel.count(
                try barrel.members.map { id in
                    guard let entry = try find(id) else { return TaskEntry.Account(state: .unknown) }
                    return entry.accounted
                })
        }
        var bytesPerSecond = 0.0
        for entry in running.values where entry.record.barrels.containsExactly(name) {
            takeInlineHead(of: entry)
            account(entry)
            bytesPerSecond += entry.work.speed.bytesPerSecond
        }
        var info = barrel.info()
        info.bytesPerSecond = bytesPerSecond
        return info
    }

    package func barrelNames() -> [String] { BarrelFile.list(in: workPath) }

    func barrelURLs(_ name: String) throws -> [String] {
        try openBarrel(name, creating: false).record.members.map(\.url)
    }
}

extension BarrelOptions {
    /// A new member with the barrel's settings where it has none of its own.
    func completing(_ task: TaskDescription) -> TaskDescription {
        var task = task
        if task.directory == nil { task.directory = directory }
        if let options, task.options == TaskOptions() { task.options = options }
        return task
    }
}
