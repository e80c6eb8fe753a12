import FKMiddleware
import Foundation

/// Performs requests that change barrels.
extension TaskControl {
    /// Creates a barrel, or replaces the settings of an existing one.
    ///
    /// - Returns: a note.
    package func createBarrel(_ name: String, options: BarrelOptions) throws -> String {
        let isNew = try barrels.create(name, options: options)
        try barrels.save(name)
        return isNew ? "barrel \(name) created" : "barrel \(name) is there already: its settings were replaced"
    }

    /// Makes a task a member. The barrel's rate limit then applies.
    package func join(_ entry: TaskEntry, barrel name: String) {
        book.join(entry, barrel: name)
        limits.apply(to: entry)
        reporter.membersChanged(of: name)
    }

    /// Makes existing tasks members. Their states do not change. A URL without a task is kept: its task joins when it is
    /// made.
    ///
    /// - Returns: the number of new members.
    package func join(_ selectors: [TaskSelector], barrel name: String) throws -> Int {
        try ownership.checkOpen()
        try barrels.open(name, creating: true)
        var count = 0
        var unknown: [String] = []
        let found = try selectors.flatMap { selector -> [TaskEntry] in
            let entries = try book.find(selector)
            if entries.isEmpty, case .url(let url) = selector.kind { unknown.append(try url.normalizedURL()) }
            return entries
        }
        for entry in found where !barrels.book.contains(entry.id, in: name) {
            join(entry, barrel: name)
            count += 1
        }
        try barrels.save(name)
        if !unknown.isEmpty { try barrels.awaited.insert(unknown, into: name) }
        return count
    }

    /// Makes a task a member of the barrels that its URL was put into before.
    func joinAwaited(_ entry: TaskEntry) {
        let url = entry.record.task.url
        book.problems.during {
            for name in try barrels.awaited.names(of: url) {
                try barrels.open(name, creating: false)
                join(entry, barrel: name)
                try barrels.awaited.remove([url], from: name)
            }
        }
    }

    /// Removes members from a barrel. Their tasks stay.
    ///
    /// - Parameter texts: URLs, or whole ids.
    /// - Returns: a note with the number of members.
    /// - Throws: `.notFound` if none of them is a member; `.noSpace` or `.disk` if the barrel could not be saved.
    package func remove(_ texts: [String], fromBarrel name: String) throws -> String {
        try ownership.checkOpen()
        try barrels.open(name, creating: false)
        let leaving = try members(texts, ofBarrel: name)
        let urls = try texts.filter { TaskID(hex: $0) == nil }.map { try $0.normalizedURL() }
        let awaited = try barrels.awaited.remove(Set(urls), from: name)
        guard !leaving.isEmpty || awaited > 0 else {
            throw DownloadError(.notFound, "None of these URLs is in barrel \(name).")
        }
        for id in leaving {
            guard let entry = try book.find(id) else {
                _ = barrels.book.remove(id, from: name)
                continue
            }
            book.leave(entry, barrel: name)
            limits.apply(to: entry)
            book.write(entry)
        }
        reporter.membersChanged(of: name)
        reporter.endBarrelSequences(name)
        try barrels.save(name)
        return "\(leaving.count + awaited) removed from barrel \(name)"
    }

    /// The members with these URLs or ids, each once. It reads the barrel at most once.
    private func members(_ texts: [String], ofBarrel name: String) throws -> [TaskID] {
        var ids: [TaskID] = []
        // Normalized URLs are ASCII, so comparing texts compares bytes.
        var urls: Set<String> = []
        for text in texts {
            if let id = TaskID(hex: text) { ids.append(id) } else { urls.insert(try text.normalizedURL()) }
        }
        if book.hasLoadedAll {
            for url in urls {
                let found = try book.find(.url(url)).map(\.id).filter { barrels.book.contains($0, in: name) }
                ids += found
                if !found.isEmpty { urls.remove(url) }
            }
        }
        if !urls.isEmpty {
            try barrels.open(name, creating: false).forEachMember { id, url in
                if urls.contains(String(decoding: url, as: UTF8.self)) { ids.append(id) }
            }
        }
        var seen: Set<TaskID> = []
        return ids.filter { barrels.book.contains($0, in: name) && seen.insert($0).inserted }
    }

    /// Deletes a barrel. Its tasks stay.
    ///
    /// - Returns: a note with the number of tasks.
    package func deleteBarrel(_ name: String) throws -> String {
        try ownership.checkOpen()
        let members = try barrels.ids(name)
        let info = try reporter.lastInfo(ofBarrel: name)
        for member in members {
            guard let entry = try book.find(member) else { continue }
            entry.record.leave(name)
            book.write(entry)
        }
        try barrels.book.delete(name)
        try barrels.awaited.remove(nil, from: name)
        limits.barrelDeleted(name)
        reporter.barrelDeleted(name, info)
        let kept =
            switch members.count {
            case 0: "it had no tasks"
            case 1: "its task was kept"
            case let count: "its \(count) tasks were kept"
            }
        return "barrel \(name) deleted; \(kept)"
    }
}
