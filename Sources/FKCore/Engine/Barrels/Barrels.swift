import FKMiddleware
import Foundation

/// The barrels of a work path: reads, creates and saves them. A barrel file is the source of truth for membership; a
/// task's record repeats it for display. Confined to the engine.
package final class Barrels {
    private let workPath: WorkPath
    private let clock: any EngineClock
    private let ownership: Ownership
    private let problems: Problems
    var book: BarrelBook
    var awaited: AwaitedMembers

    init(_ workPath: WorkPath, ownership: Ownership, problems: Problems, clock: any EngineClock) {
        self.workPath = workPath
        self.ownership = ownership
        self.problems = problems
        self.clock = clock
        book = BarrelBook(workPath)
        awaited = AwaitedMembers(workPath)
    }

    /// The names of all barrels, sorted.
    ///
    /// - Throws: `.disk` if their folder cannot be listed.
    package func names() throws -> [String] { try BarrelFile.list(in: workPath) }

    /// Creates a barrel, or replaces the settings of an existing one. Returns false if it existed.
    package func create(_ name: String, options: BarrelOptions) throws -> Bool {
        try name.validateAsBarrelName()
        try options.options?.validate()
        let isNew = !workPath.hasBarrel(name)
        var options = options
        options.rateLimit = try options.rateLimit ?? open(name, creating: true).options.rateLimit
        book.setOptions(options, of: name)
        return isNew
    }

    /// Opens a barrel in the book, reading its file if needed.
    ///
    /// - Throws: `.notFound` if there is no such barrel and `creating` is false.
    @discardableResult
    package func open(_ name: String, creating: Bool) throws -> BarrelEntry {
        guard ownership.mayWrite else { return try BarrelEntry(name, in: workPath) }
        if let barrel = book[name] { return barrel }
        try name.validateAsBarrelName()
        var barrel: BarrelEntry
        do {
            barrel = try BarrelEntry(name, in: workPath)
        } catch let error as DownloadError where error.code == .notFound && creating {
            let record = BarrelRecord(name: name, created: clock.date)
            try BarrelFile.write(record, in: workPath)
            barrel = BarrelEntry(record: record)
        } catch let error as DownloadError where error.code == .corruptInfo {
            let path = workPath.barrelPath(name)
            let report = Quarantine.move(path, in: workPath, because: error)
            problems.append(report)
            throw report
        }
        if BarrelFile.isMarked(name, in: workPath) || barrel.isTorn {
            try barrel.reconcile(in: workPath)
            BarrelFile.removeMark(name, in: workPath)
        }
        book.open(barrel)
        return barrel
    }

    /// The ids of the members in the order in which they joined.
    ///
    /// - Throws: `.notFound` if there is no such barrel.
    package func ids(_ name: String) throws -> [TaskID] { try open(name, creating: false).ids }

    /// The members in the order in which they joined.
    ///
    /// - Throws: `.notFound` if there is no such barrel.
    package func members(_ name: String) throws -> [BarrelMember] { try open(name, creating: false).members() }

    /// Saves the barrels that are due at the end of a request, each once.
    package func save() {
        if ownership.mayWrite { book.saveDue().forEach { problems.append($0.error) } }
    }

    /// The same at the end of a request that has changed this barrel.
    ///
    /// - Throws: `.noSpace` or `.disk` if the barrel could not be saved.
    func save(_ name: String) throws(DownloadError) {
        guard ownership.mayWrite else { return }
        var own: DownloadError?
        for (saved, error) in book.saveDue() {
            if saved.isExactly(name) { own = error } else { problems.append(error) }
        }
        if let own { throw own }
    }

    func saveAll() {
        if ownership.mayWrite { book.saveAll().forEach { problems.append($0.error) } }
    }
}

extension BarrelOptions {
    /// Completes a new member with the barrel's settings where it has none.
    package func completing(_ task: TaskDescription) -> TaskDescription {
        var task = task
        if task.directory == nil { task.directory = directory }
        if let options, task.options == TaskOptions() {
            task.options = options
            task.words.insert(.fillsOptions)
        }
        return task
    }
}
