import FKMiddleware

/// Where the tasks of a divided work path are: some only here, some in the work path of a shard, some in both. A task that
/// is in both counts once, as its shard has it.
struct ShardedTasks: Sendable {
    private let root: WorkPath
    private let shards: [Shard]
    /// The numbers of shards, usually one.
    private let counts: [Int]

    /// Looks for the shards of a work path; nil if it has none.
    ///
    /// - Throws: `.disk` if their folder cannot be listed.
    init?(_ root: WorkPath) throws {
        shards = try root.shards()
        guard !shards.isEmpty else { return nil }
        self.root = root
        counts = Set(shards.map(\.count)).sorted()
    }

    var workPaths: [WorkPath] { shards.map(root.shard) }

    /// The work path that has the task's record: that of its shard if it knows the task.
    func home(of id: TaskID) -> WorkPath { ownShard(of: id) ?? root }

    /// The shard that has the task; of several divisions the one in which it has changed last.
    private func ownShard(of id: TaskID) -> WorkPath? {
        let paths = counts.map { root.shard(Shard(of: id, count: $0)) }.filter { $0.hasTask(id) }
        guard paths.count > 1 else { return paths.first }
        func changed(_ path: WorkPath) -> Int64 { FileIdentity(path: path.infoPath(id))?.time ?? 0 }
        return paths.max { changed($0) < changed($1) }
    }

    /// The ids of all tasks, each once, in no particular order.
    func allTaskIDs() throws -> [TaskID] {
        var ids = try root.allTaskIDs()
        for shard in shards {
            ids += try root.shard(shard).allTaskIDs().filter { !root.hasTask($0) && isFirst(shard, of: $0) }
        }
        return ids
    }

    /// The ids whose hexadecimal form starts with `prefix`, each once, in no particular order.
    func taskIDs(prefix: String) throws -> [TaskID] {
        Array(Set(try ([root] + workPaths).flatMap { try $0.taskIDs(prefix: prefix) }))
    }

    /// The names of the barrels, sorted.
    func barrelNames() throws -> [String] { Set(try ([root] + workPaths).flatMap(BarrelFile.list(in:))).sorted() }

    /// A barrel: the members of the work path in their order, then what only shards have.
    ///
    /// - Throws: `.notFound`, `.corruptInfo`, `.laterVersion` or `.disk`.
    func barrel(_ name: String) throws -> BarrelRecord {
        var found: BarrelRecord?
        var known: Set<TaskID> = []
        for path in [root] + workPaths {
            do {
                let barrel = try BarrelFile.read(name, in: path)
                if found == nil {
                    found = barrel
                    known = Set(barrel.members.map(\.id))
                } else {
                    found?.members += barrel.members.filter { known.insert($0.id).inserted }
                }
            } catch let error as DownloadError where error.code == .notFound {
                continue
            }
        }
        guard let found else { throw DownloadError(.notFound, "There is no barrel named \"\(name)\".") }
        return found
    }

    /// Why queued tasks wait, for each work path with an engine.
    func waitNotices() -> [WorkPath: WaitNotice] {
        var notices: [WorkPath: WaitNotice] = [:]
        for path in [root] + workPaths where EngineLock.isHeld(path) { notices[path] = path.waitNotice }
        return notices
    }

    /// False for a task that a shard of another division has as well and that is counted there.
    private func isFirst(_ shard: Shard, of id: TaskID) -> Bool {
        counts.count == 1 || ownShard(of: id) == root.shard(shard)
    }
}
