import FKCore
import FKMiddleware
import Foundation

/// `fk watch` and `fk barrel watch`: a live view of the work path, whichever process runs the engine. It only reads.
struct WatchCommand: Command {
    /// nil for the whole work path, until Ctrl-C. A barrel is watched until none of its members can run any more.
    let barrel: String?
    let global: GlobalOptions
    let context: CommandContext

    func run() async throws -> Int32 {
        let workPath = WorkPath(global.workPath)
        try workPath.open(create: barrel == nil)
        let reader = StoreReader(workPath)
        let members = try barrel.map { try reader.barrel($0).members.map(\.id) }
        let presenter = RunPresenter(
            global, context, barrels: barrel.flatMap { name in members.map { [(name: name, members: $0)] } } ?? [])
        let signal = Locked<Int32?>(nil)
        let trap = SignalTrap { number in signal.withLock { $0 = number } }
        var tracker = RunTracker(targets: members.map(Set.init))
        var known: Set<TaskID> = []
        var looks = 0
        var speeds = FollowedSpeeds()
        var watch = EngineWatch(interval: 0.5)
        while signal.withLock({ $0 }) == nil {
            // It looks for new tasks less often than it reads known ones, because a work path may contain a hundred
            // thousand.
            let all = looks % 10 == 0 ? (members ?? workPath.allTaskIDs()).filter { !known.contains($0) } : []
            let isFirst = looks == 0
            looks += 1
            known.formUnion(all)
            var running: [DownloadInfo] = []
            for record in reader.records(Array(tracker.openIDs.union(all))) {
                let info = speeds.measured(DownloadInfo(record))
                if info.state == .action { running.append(info) }
                // Tasks that were settled before are counted but not shown.
                if tracker.update(info), !(isFirst && info.state.isSettled) { presenter.show(.state(info)) }
            }
            presenter.show(.progress(running: running, tracker))
            if barrel != nil, tracker.isSettled { break }
            // The reader of the output is gone.
            if global.json, context.output.isBroken { break }
            if !EngineLock.isHeld(workPath) {
                watch = EngineWatch(interval: 0.5)
            } else if let news = watch.look(EngineLock.content(workPath), now: EngineWatch.now) {
                presenter.show(.engineNews(news, pid: EngineLock.holder(workPath)?.pid ?? 0))
            }
            try await Task.sleep(for: .milliseconds(500))
        }
        withExtendedLifetime(trap) {}
        presenter.close(tracker)
        if let number = signal.withLock({ $0 }) { return SignalTrap.exitStatus(number) }
        return tracker.count(.error) > 0 ? ExitStatus.taskFailed : ExitStatus.done
    }
}
