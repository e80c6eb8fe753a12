import FKMiddleware
import Foundation

/// Named groups of tasks. The barrel file is the truth about membership; a task's record repeats it for display.
extension Engine {
    func createBarrel(_ name: String, options: BarrelOptions) throws -> String {
        try BarrelName.validate(name)
        try options.options?.validate()
        let isKnown = workPath.hasBarrel(name)
        var options = options
        options.rateLimit = try options.rateLimit ?? openBarrel(name, creating: true).options.rateLimit
        barrels.setOptions(options, of: name)
        saveBarrels()
        return isKnown ? "barrel \(name) is there already: its settings were replaced" : "barrel \(name) created"
    }

    /// Reads the barrel into the book.
    ///
    /// - Throws: `.notFound` when there is no such barrel and `creating` is false.
    @discardableResult
    func openBarrel(_ name: String, creating: Bool) throws -> Barrel {
        guard mayWrite else { return Barrel(record: try BarrelFile.load(name, in: workPath)) }
        if let barrel = barrels[name] { return barrel }
        try BarrelName.validate(name)
        var record: BarrelRecord
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
        if BarrelFile.isMarked(name, in: workPath) {
            record = BarrelFile.reconciled(record, in: workPath)
            try BarrelFile.save(record, in: workPath)
            BarrelFile.removeMark(name, in: workPath)
        }
        let barrel = Barrel(record: record)
        barrels.open(barrel)
        return barrel
    }

    /// Makes a task a member, in its record and in the barrel, which is open.
    func join(_ entry: TaskEntry, barrelNamed name: String) {
        let isMember = !barrels.insert(.init(id: entry.id, url: entry.record.task.url), into: name)
        if !isMember { barrels.replace(TaskEntry.Account(), by: entry.accounted, in: [name]) }
        if !entry.record.barrels.containsExactly(name) {
            entry.record.barrels.append(name)
            write(entry)
        }
        // It shares the barrel's limit from now on.
        entry.attempt?.limits.replace(with: limiters(for: entry))
    }

    /// Makes existing tasks members as well; they stay what they are.
    func join(_ selectors: [TaskSelector], barrelNamed name: String) throws -> Int {
        try checkOpen()
        try openBarrel(name, creating: true)
        var count = 0
        for entry in try selectors.flatMap({ try find($0) }) where !barrels.contains(entry.id, in: name) {
            join(entry, barrelNamed: name)
            count += 1
        }
        saveBarrels()
        return count
    }

    /// Takes a task out of the barrel. The record is only changed in memory, the barrel's file at the end of the request.
    func leave(_ entry: TaskEntry, barrelNamed name: String) {
        entry.record.barrels.removeAll { $0.isExactly(name) }
        guard (try? openBarrel(name, creating: false)) != nil else { return }
        if barrels.remove(entry.id, from: name) {
            barrels.replace(entry.accounted, by: TaskEntry.Account(), in: [name])
        }
        entry.attempt?.limits.replace(with: limiters(for: entry))
        entry.attempt?.lanes.forEach { $0.operation?.resume() }
    }

    /// - Parameter texts: URLs, or whole ids.
    func remove(_ texts: [String], fromBarrel name: String) throws -> String {
        try checkOpen()
        try openBarrel(name, creating: false)
        let leaving = try members(texts, ofBarrel: name)
        guard !leaving.isEmpty else { throw DownloadError(.notFound, "None of these URLs is in barrel \(name).") }
        for id in leaving {
            guard let entry = try find(id) else {
                _ = barrels.remove(id, from: name)
                continue
            }
            leave(entry, barrelNamed: name)
            write(entry)
        }
        saveBarrels()
        endBarrelSequences(name)
        return "\(leaving.count) removed from barrel \(name)"
    }

    /// The members that are named by URL or id, each once. One pass over the barrel at most, however many are named.
    private func members(_ texts: [String], ofBarrel name: String) throws -> [TaskID] {
        var ids: [TaskID] = []
        // Normalized URLs are ASCII: they are equal when their bytes are.
        var urls: Set<String> = []
        for text in texts {
            if let id = TaskID(hex: text) { ids.append(id) } else { urls.insert(try URLNormalizer.normalize(text)) }
        }
        if hasLoadedAll {
            for url in urls {
                let found = try find(.url(url)).map(\.id).filter { barrels.contains($0, in: name) }
                ids += found
                if !found.isEmpty { urls.remove(url) }
            }
        }
        if !urls.isEmpty { ids += try barrelMembers(name).filter { urls.contains($0.url) }.map(\.id) }
        var seen: Set<TaskID> = []
        return ids.filter { barrels.contains($0, in: name) && seen.insert($0).inserted }
    }

    func deleteBarrel(_ name: String) throws -> String {
        try checkOpen()
        let members = try barrelMembers(name)
        let listeners = observers.barrels.filter { $0.name.isExactly(name) }
        let info = listeners.isEmpty ? nil : try barrelInfo(name)
        for member in members {
            guard let entry = try find(member.id) else { continue }
            entry.record.barrels.removeAll { $0.isExactly(name) }
            write(entry)
        }
        try barrels.delete(name)
        barrelLimiters[name] = nil
        limitsChanged()
        for listener in listeners { tell(listener, info) }
        endListeners(observers.removeBarrel(name))
        let kept =
            switch members.count {
            case 0: "it had no tasks"
            case 1: "its task was kept"
            case let count: "its \(count) tasks were kept"
            }
        return "barrel \(name) deleted; \(kept)"
    }

    /// At the end of a request: each barrel that it has changed is saved once.
    func saveBarrels() {
        if mayWrite { barrels.saveDue().forEach { problems.append($0) } }
    }

    func saveAllBarrels() {
        if mayWrite { barrels.saveAll().forEach { problems.append($0) } }
    }

    /// The sum of a barrel now.
    package func barrelInfo(_ name: String) throws -> BarrelInfo {
        var barrel = try openBarrel(name, creating: false)
        if !barrel.isCounted {
            let accounts = try barrel.members.map { member in
                try find(member.id)?.accounted ?? TaskEntry.Account(state: .unknown)
            }
            barrel.count(accounts)
            barrels.count(name, accounts)
        }
        var bytesPerSecond = 0.0
        for entry in running.values where entry.record.barrels.containsExactly(name) {
            takeInlineHead(of: entry)
            account(entry)
            bytesPerSecond += entry.work.speed.bytesPerSecond
        }
        // A closed engine has none open, and counts what is on the disk.
        var info = mayWrite ? barrels.info(name) : barrel.info()
        info.bytesPerSecond = bytesPerSecond
        return info
    }

    /// In the order in which they joined.
    func barrelMembers(_ name: String) throws -> [BarrelMember] { try openBarrel(name, creating: false).members }

    package func barrelNames() -> [String] { BarrelFile.list(in: workPath) }

    func barrelURLs(_ name: String) throws -> [String] {
        try barrelMembers(name).map(\.url)
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
