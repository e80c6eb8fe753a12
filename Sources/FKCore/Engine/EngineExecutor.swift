import Foundation

/// One thread that runs everything the engine does: jobs of its actor, events of the transport, and the timers.
///
/// A thread of its own and not the cooperative pool, because the engine writes info files and must not hold up one
/// of the pool's few threads while a disk is slow. While nothing is due the thread sleeps.
package final class EngineExecutor: SerialExecutor, @unchecked Sendable {
    private enum Work {
        case job(UnownedJob)
        case closure(@Sendable () -> Void)
    }

    // Sendable because everything mutable below is touched only with `lock` held.
    private let lock = NSLock()
    private var work: [Work] = []
    private var isStopped = false
    private var isSleeping = false
    private var deadline: Int64 = .max
    private var onDeadline: (@Sendable () -> Void)?

    private let wakeUp = DispatchSemaphore(value: 0)
    private let clock: any EngineClock
    private let thread = WorkThread()

    package init(clock: any EngineClock) {
        self.clock = clock
        thread.start(name: "fk.engine", stackSize: 1 << 20) { [self] in loop() }
        clock.onManualChange { [weak self] in self?.wake() }
    }

    package func enqueue(_ job: consuming ExecutorJob) {
        submit(.job(UnownedJob(job)))
    }

    /// Runs a closure on the engine's thread, after everything submitted before it.
    package func run(_ closure: @escaping @Sendable () -> Void) {
        submit(.closure(closure))
    }

    /// Has `body` run on the engine's thread once the clock reaches `deadline` (monotonic nanoseconds). There is one
    /// deadline; a new one replaces it.
    package func setDeadline(_ deadline: Int64, _ body: @escaping @Sendable () -> Void) {
        lock.lock()
        self.deadline = deadline
        onDeadline = body
        lock.unlock()
        wake()
    }

    /// Ends the thread once all submitted work is done. Work submitted later is run by nobody.
    ///
    /// Safe on the thread itself.
    package func stop() {
        lock.lock()
        isStopped = true
        lock.unlock()
        wake()
    }

    /// After `stop`: waits until the thread is gone. On the thread itself it does nothing.
    package func join() { thread.join() }

    package func checkIsolated() {
        precondition(thread.isCurrent, "not on the engine's thread")
    }

    package func isIsolatingCurrentContext() -> Bool? { thread.isCurrent }

    private func submit(_ item: Work) {
        lock.lock()
        work.append(item)
        let mustWake = isSleeping
        isSleeping = false
        lock.unlock()
        if mustWake { wakeUp.signal() }
    }

    private func wake() {
        lock.lock()
        let mustWake = isSleeping
        isSleeping = false
        lock.unlock()
        if mustWake { wakeUp.signal() }
    }

    private func loop() {
        var batch: [Work] = []
        while true {
            batch.removeAll(keepingCapacity: true)
            lock.lock()
            swap(&batch, &work)
            let now = clock.now
            var due: (@Sendable () -> Void)?
            if deadline <= now {
                due = onDeadline
                deadline = .max
            }
            let stop = isStopped
            let next = deadline
            isSleeping = batch.isEmpty && due == nil && !stop
            let sleeps = isSleeping
            lock.unlock()

            due?()
            for item in batch {
                switch item {
                case .job(let job): job.runSynchronously(on: asUnownedSerialExecutor())
                case .closure(let closure): closure()
                }
            }
            if stop, batch.isEmpty, due == nil { return }
            if sleeps { sleep(until: next, now: now) }
        }
    }

    private func sleep(until deadline: Int64, now: Int64) {
        if clock.isManual || deadline == .max {
            wakeUp.wait()
        } else {
            if wakeUp.wait(timeout: .now() + .nanoseconds(Int(deadline - now))) == .timedOut {
                lock.lock()
                let wasSignalled = !isSleeping
                isSleeping = false
                lock.unlock()
                // Somebody signalled between our time-out and here: take the signal, so that it wakes nobody later.
                if wasSignalled { wakeUp.wait() }
            }
        }
    }
}
