import FKEngine
import FKMiddleware
import Foundation

/// Connects a `Progress` to a task or barrel.
///
/// ```text
/// engine --(callbacks, weak)--> link --(on queue)--> Progress
/// engine <--------(verbs)------ link <--(handlers)-- Progress
/// ```
///
/// Only the handlers retain the link, so it ends with its `Progress`. A handler compares the `Progress` with the
/// state that was last reported or requested, and gives a verb only if they differ. A `Progress` that is paused
/// because the task was suspended therefore gives no verb back, however late its handler runs.
final class ProgressLink: @unchecked Sendable {
    // Sendable because mutable state is touched only on `queue` and in `deinit`.
    private let queue: DispatchQueue
    private let selector: TaskSelector
    private weak var engine: (any EngineAccess)?
    private weak var progress: Progress?
    private var listener: UInt64?
    /// Complete or cancelled: the link follows nothing any more.
    private var isOver = false
    /// The last reported value.
    private var isSuspended = false
    /// The last reported or requested value.
    private var isPauseKnown = false
    private var isCancelKnown = false
    /// The last verb. The next one waits for it.
    private var lastVerb: Task<Void, Never>?

    private static let defaultQueue = DispatchQueue(label: "fk.progress")

    init(_ engine: any EngineAccess, _ selector: TaskSelector, _ queue: DispatchQueue?) {
        self.engine = engine
        self.selector = selector
        self.queue = queue ?? Self.defaultQueue
    }

    deinit { stopListening() }

    /// Creates the `Progress` in its current state.
    func begin(_ snapshot: ProgressSnapshot) async -> Progress {
        await withCheckedContinuation { continuation in
            queue.async {
                let progress = SharedProgress(parent: nil)
                progress.totalUnitCount = -1
                progress.kind = .file
                progress.setUserInfoObject(Progress.FileOperationKind.downloading, forKey: .fileOperationKindKey)
                progress.isPausable = true
                progress.isCancellable = true
                self.progress = progress
                self.apply(snapshot)
                progress.pausingHandler = self.handler
                progress.resumingHandler = self.handler
                progress.cancellationHandler = self.handler
                continuation.resume(returning: progress)
            }
        }
    }

    /// Takes over the engine's listener, to remove it later.
    func follow(_ number: UInt64) async {
        await withCheckedContinuation { continuation in
            queue.async {
                self.listener = number
                if self.isOver { self.stopListening() }
                continuation.resume()
            }
        }
    }

    func update(_ snapshot: ProgressSnapshot) { queue.async { self.apply(snapshot) } }

    // MARK: From the engine

    private func apply(_ snapshot: ProgressSnapshot) {
        guard !isOver, let progress else { return }
        show(snapshot, on: progress)
        if snapshot.isCancelled {
            isCancelKnown = true
            if !progress.isCancelled { progress.cancel() }
        }
        if snapshot.isPaused != isSuspended {
            isSuspended = snapshot.isPaused
            settlePause(of: progress)
        }
        guard snapshot.isComplete || snapshot.isCancelled else { return }
        isOver = true
        progress.isPausable = false
        progress.isCancellable = false
        stopListening()
    }

    private func show(_ snapshot: ProgressSnapshot, on progress: Progress) {
        // Set before the counts, for observers of the counts.
        let isRunning = snapshot.bytesPerSecond > 0 && !snapshot.isComplete
        progress.setUserInfoObject(isRunning ? NSNumber(value: snapshot.bytesPerSecond) : nil, forKey: .throughputKey)
        progress.setUserInfoObject(
            snapshot.remainingTime.map { NSNumber(value: $0) }, forKey: .estimatedTimeRemainingKey)
        if let files = snapshot.files {
            progress.setUserInfoObject(NSNumber(value: files.total), forKey: .fileTotalCountKey)
            progress.setUserInfoObject(NSNumber(value: files.complete), forKey: .fileCompletedCountKey)
        }
        if snapshot.isComplete, let path = snapshot.path {
            progress.setUserInfoObject(URL(fileURLWithPath: path), forKey: .fileURLKey)
        }
        // The order of the two changes keeps the counts from being equal in between.
        let (completed, total) = snapshot.units
        if completed < progress.completedUnitCount { progress.completedUnitCount = completed }
        if total != progress.totalUnitCount { progress.totalUnitCount = total }
        if completed != progress.completedUnitCount { progress.completedUnitCount = completed }
    }

    private func settlePause(of progress: Progress) {
        isPauseKnown = isSuspended
        guard progress.isPaused != isSuspended else { return }
        if isSuspended { progress.pause() } else { progress.resume() }
    }

    private func stopListening() {
        guard let listener, let engine else { return }
        self.listener = nil
        Task { await engine.stopObserving(listener) }
    }

    // MARK: To the engine

    /// Runs on any thread, some time after the `Progress` has changed.
    private var handler: @Sendable () -> Void {
        { self.queue.async { self.obey() } }
    }

    private func obey() {
        guard !isOver, let progress else { return }
        if progress.isCancelled {
            if !isCancelKnown { give(.cancel) }
            isCancelKnown = true
        } else if progress.isPaused != isPauseKnown {
            isPauseKnown = progress.isPaused
            give(isPauseKnown ? .suspend : .resume)
        }
    }

    private func give(_ verb: Verb) {
        lastVerb = Task { [weak self, weak engine, selector, lastVerb] in
            await lastVerb?.value
            let results = try? await engine?.perform(.verb(verb, selector))
            if results?.contains(where: \.applied) != true { self?.refused() }
        }
    }

    /// The verb did not apply, so the `Progress` shows the task's state again.
    private func refused() {
        queue.async {
            if !self.isOver, let progress = self.progress { self.settlePause(of: progress) }
        }
    }
}

#if canImport(Darwin)
    typealias SharedProgress = Progress
#else
    /// Foundation's own class may crash when one thread reads `userInfo` while another changes it.
    private final class SharedProgress: Progress, @unchecked Sendable {
        // Sendable like its superclass; a lock protects `userInfo`.
        private let lock = Locked(())
        override func setUserInfoObject(_ object: Any?, forKey key: ProgressUserInfoKey) {
            lock.withLock { _ in super.setUserInfoObject(object, forKey: key) }
        }
        override var userInfo: [ProgressUserInfoKey: Any] { lock.withLock { _ in super.userInfo } }
    }
#endif
