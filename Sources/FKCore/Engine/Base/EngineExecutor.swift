import FKMiddleware
import Foundation

/// The thread that runs all of the engine's work: jobs of its actor, events of the transport, and timers.
///
/// The engine has its own thread instead of the cooperative pool, because it writes info files. A slow disk must not
/// block one of the pool's few threads. The thread sleeps while nothing is due.
package final class EngineExecutor: SerialExecutor, @unchecked Sendable {
    private enum Work {
        case job(UnownedJob)
        case closure(@Sendable () -> Void)
    }

    // Sendable because all mutable state below is accessed only with `lock` held.
    private let lock = NSLock()
    private var work: [Work] = []
    private var isStopped = false
    private var isSleeping = false
    private var deadline: Int64 = .max
    private var onDeadline: (@Sendable () -> Void)?

    private let wakeUp = DispatchSemaphore(value: 0)
    private let clock: any EngineClock
    private let thread = WorkThread()

    /// Starts the thread.
    ///
    /// - Parameter clock: the clock for deadlines.
    package init(clock: any EngineClock) {
        self.clock = clock
        thread.start(name: "fk.engine", stackSize: 1 << 20) { [self] in loop() }
        clock.onManualChange { [weak self] in self?.wake() }
    }

    /// Runs a job of the actor on the thread, after all work submitted before it. Safe from any thread.
    package func enqueue(_ job: consuming ExecutorJob) {
        submit(.job(UnownedJob(job)))
    }

    /// Runs a closure on the thread, after all work submitted before it. Safe from any thread.
    package func run(_ closure: @escaping @Sendable () -> Void) {
        submit(.closure(closure))
    }

    /// Runs `body` on the thread once the clock reaches `deadline` (monotonic nanoseconds). There is one deadline; a
    /// new one replaces it.
    package func setDeadline(_ deadline: Int64, _ body: @escaping @Sendable () -> Void) {
        lock.lock()
        self.deadline = deadline
        onDeadline = body
        lock.unlock()
        wake()
    }

    /// Ends the thread once all submitted work is done. Work submitted later never runs.
    ///
    /// Safe to call on the thread itself.
    package func stop() {
        lock.lock()
        isStopped = true
        lock.unlock()
        wake()
    }

    /// Waits until the thread has ended, after `stop`. On the thread itself it returns immediately.
    package func join() { thread.join() }

    /// Stops the program unless it is called on the thread.
    package func checkIsolated() {
        precondition(thread.isCurrent, "not on the engine's thread")
    }

    /// True on the thread; never nil.
    package func isIsolatingCurrentContext() -> Bool? { thread.isCurrent }

    private func submit(_ item: Work) {
        wake { work.append(item) }
    }

    private func wake(_ change: () -> Void = {}) {
        lock.lock()
        change()
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
                // A signal arrived between the time-out and this line. It is consumed here, or it would end a later
                // sleep.
                if wasSignalled { wakeUp.wait() }
            }
        }
    }
}

/// Keeps the thread of an executor alive until it is released. So an engine that its `SharedEngine` has released still finishes
/// its work, and a closed engine still answers.
package final class EngineThread: Sendable {
    package let executor: EngineExecutor
    private let isJoined = Locked(false)

    /// Starts the thread.
    package init(clock: any EngineClock) { executor = EngineExecutor(clock: clock) }

    /// From now on the last holder waits for the thread's end when it releases this. A program may exit after it has
    /// closed its engine; its thread should not run then.
    package func joinWhenReleased() { isJoined.withLock { $0 = true } }

    deinit {
        executor.stop()
        if isJoined.withLock(\.self) { executor.join() }
    }
}
