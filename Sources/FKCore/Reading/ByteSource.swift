import FKEngine
import FKMiddleware
import Foundation

/// What a `PartReader` reads: a task of an engine of this process, or of another one's.
protocol ByteSource: Sendable {
    /// True if the file is a stream: the reader alone compares it.
    var isStream: Bool { get }

    /// Waits until the bytes from `position` to `need` can be read, the file has ended, or nothing more comes
    /// (`Engine.nextBytes`).
    func next(
        at position: Int64, need: Int64, generation: Int?, waitsForEnd: Bool
    ) async throws(DownloadError) -> ReadView
    /// The digests of the pieces of a list; nil if they are lost.
    func digests(of summary: PieceDigests) -> PieceDigests?
    /// False if received bytes were dropped since a look.
    func isCurrent(_ generation: Int, at position: Int64) -> Bool
    /// The reader has taken all bytes before `position`.
    func moved(to position: Int64)
    /// A piece of a list is wrong.
    func refuse(piece index: Int) async
    /// The reader has ended. It returns at once.
    func close()
}

/// A task of an engine of this process.
final class EngineSource: ByteSource {
    private let engine: Engine
    private let id: TaskID
    private let number: Int
    private let ring: ByteRing?
    private let onClose: @Sendable () -> Void
    private let isClosed = Locked(false)

    private let token = Locked<ReadFeed.Token?>(nil)

    var isStream: Bool { ring != nil }

    /// - Parameters:
    ///   - number: of `Engine.openReader` or `openStream`.
    ///   - onClose: called once at the end.
    init(
        _ engine: Engine, _ id: TaskID, number: Int, ring: ByteRing? = nil,
        onClose: @escaping @Sendable () -> Void = {}
    ) {
        (self.engine, self.id, self.number, self.ring, self.onClose) = (engine, id, number, ring, onClose)
    }

    deinit { close() }

    func next(
        at position: Int64, need: Int64, generation: Int?, waitsForEnd: Bool
    ) async throws(DownloadError) -> ReadView {
        let view = try await engine.nextBytes(
            id, number, at: position, need: need, generation: generation, waitsForEnd: waitsForEnd)
        token.withLock { $0 = view.token }
        return view
    }

    func digests(of summary: PieceDigests) -> PieceDigests? {
        PieceDigestFile.read(engine.workPath.digestsPath(id), of: summary)
    }

    func isCurrent(_ generation: Int, at position: Int64) -> Bool {
        token.withLock { $0?.generation == generation }
    }

    func moved(to position: Int64) { ring?.advance(to: position) }

    func refuse(piece index: Int) async {
        if isStream { return await engine.refuse(piece: index, of: id) }
        // The engine compares it as well, once a second.
        try? await Task.sleep(for: .milliseconds(200))
    }

    func close() {
        let isFirst = isClosed.withLock { isClosed in
            defer { isClosed = true }
            return !isClosed
        }
        guard isFirst else { return }
        Task { [engine, id, number] in await engine.closeReader(id, number) }
        onClose()
    }
}

/// A task of another process's engine, or of none: its info file says which bytes are there.
final class StoreSource: ByteSource {
    private let workPath: WorkPath
    private let id: TaskID
    private let state = Locked(State())

    private struct State {
        var generation = 0
        var number: UInt64?
        var validator: Validator?
        var url: String?
    }

    var isStream: Bool { false }

    init(_ workPath: WorkPath, _ id: TaskID) { (self.workPath, self.id) = (workPath, id) }

    /// The time between two looks: the counters of another process may change at any time.
    private static let pause = Duration.milliseconds(50)

    func next(
        at position: Int64, need: Int64, generation: Int?, waitsForEnd: Bool
    ) async throws(DownloadError) -> ReadView {
        while true {
            if Task.isCancelled { throw DownloadError(.cancelled, "The reading was cancelled.") }
            let record = try record()
            let view = view(record, at: position, generation: generation)
            let isEnd = view.length.map { position >= $0 } ?? false
            if view.available >= need || view.failure != nil || view.generation != generation ?? view.generation
                || isEnd && (view.isFinal || !waitsForEnd)
            {
                return view
            }
            try? await Task.sleep(for: Self.pause)
        }
    }

    private func record() throws(DownloadError) -> TaskRecord {
        do throws(DownloadError) {
            let record = try typedNow { try StoreReader(workPath).record(id) }
            state.withLock { $0.url = record.task.url }
            return record
        } catch {
            guard error.code == .notFound, let url = state.withLock({ $0.url }) else { throw error }
            throw Self.deleted(url)
        }
    }

    private static func deleted(_ url: String) -> DownloadError {
        DownloadError(.cancelled, "The task was deleted while its file was read.", url: url.masked)
    }

    private func view(_ record: TaskRecord, at position: Int64, generation: Int?) -> ReadView {
        let isComplete = record.state == .complete
        var view = ReadView(
            available: ReadPlanner.availableEnd(record.ranges, from: position), length: record.expected)
        if record.ranges.contains(where: { $0.end == nil }) { view.length = nil }
        if isComplete { view.available = max(position, record.expected ?? position) }
        view.generation = state.withLock { state in
            let isOther =
                state.number != nil
                && (state.number != record.number || state.validator != nil && state.validator != record.validator)
            // Bytes before a reader do not disappear, unless they were dropped.
            let isShorter = position > 0 && ReadPlanner.availableEnd(record.ranges, from: position - 1) < position
            if isOther || !isComplete && generation != nil && isShorter { state.generation += 1 }
            (state.number, state.validator) = (record.number, record.validator)
            return state.generation
        }
        view.lostAt = view.generation
        // The bytes of a cancelled or deleted task are dropped as well.
        if record.state != .cancel, record.state != .unknown {
            view.dropReason = DownloadError(
                .changedOnServer, "The bytes that were received before were dropped: the file has changed.",
                url: record.task.url.masked)
        }
        view.isFinal = isComplete
        view.pieces = record.task.optionsBox?.value.pieces
        do throws(DownloadError) {
            if view.available > position, generation != view.generation {
                view.file = try record.readFile(home: workPath.destination(of: record))
            }
        } catch {
            view.available = position
            if isComplete { view.failure = error }
        }
        switch record.state {
        case .error: view.failure = record.error ?? DownloadError(.cancelled, "The download has failed.")
        case .cancel:
            view.failure = DownloadError(.cancelled, "The download was cancelled.", url: record.task.url.masked)
        case .unknown: view.failure = Self.deleted(record.task.url)
        default: break
        }
        return view
    }

    func digests(of summary: PieceDigests) -> PieceDigests? {
        PieceDigestFile.read(workPath.digestsPath(id), of: summary)
    }

    func isCurrent(_ generation: Int, at position: Int64) -> Bool {
        guard let record = try? StoreReader(workPath).record(id) else { return false }
        return record.state == .complete || view(record, at: position, generation: generation).generation == generation
    }

    func moved(to position: Int64) {}
    func refuse(piece index: Int) async { try? await Task.sleep(for: .milliseconds(200)) }
    func close() {}
}
