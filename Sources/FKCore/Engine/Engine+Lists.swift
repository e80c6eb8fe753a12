import FKMiddleware

/// The waiting list and the running list.
extension Engine {
    /// The queued tasks in the order in which they would start now: first those in the ready queue, those of hosts that
    /// may not be asked last, then those whose next attempt is due later.
    package func waitingInfos() -> [DownloadInfo] {
        var queue = ready
        // Queued again while it was being stopped: it is in the queue once that has ended.
        for entry in running.values where entry.record.state == .idle && entry.isAdmitted {
            queue.push(readyElement(entry))
        }
        let now = clock.now
        var free = descriptors.slots - running.count
        var groups = groups
        var more: [String: Int] = [:]
        var open: [TaskID] = []
        var closed: [TaskID] = []
        for element in queue.sorted() {
            guard hosts.obstacle(element.host, now: now, more: more[element.host, default: 0]) == nil else {
                closed.append(element.id)
                continue
            }
            open.append(element.id)
            // It would take one of the slots that are free.
            if free > 0, groups.hasSlot(element.group, shared: configure.maxAction) {
                groups.began(element.group)
                more[element.host, default: 0] += 1
                free -= 1
            }
        }
        return (open + closed + alarms.wakes.sorted()).compactMap { id in (tasks[id] ?? unrest(id)).map { info($0) } }
    }

    /// The tasks that run, in the order in which their attempts began, with fresh speeds.
    package func runningInOrder() -> [DownloadInfo] {
        running.values.filter { $0.record.state == .action }
            .sorted { ($0.workIfAny?.start?.order ?? 0) < ($1.workIfAny?.start?.order ?? 0) }
            .map { entry in
                sample(entry)
                return info(entry)
            }
    }

    /// The task as the ready queue sees it.
    func readyElement(_ entry: TaskEntry) -> ReadyQueue.Element {
        .init(
            id: entry.id, priority: entry.record.task.priority, number: entry.record.number, host: entry.host,
            group: entry.group)
    }
}
