import FKMiddleware

/// Hands the pages of a source to their reader.
public struct SourcePageSender: Sendable {
    fileprivate let channel: PageChannel

    /// Hands a page over, and waits until the reader asks for the next one.
    ///
    /// - Throws: `CancellationError` once nobody reads.
    public func callAsFunction(_ page: SourcePage) async throws { try await channel.send(page) }

    /// Reads a list in one of the forms of `Manifest`, and hands its files over, a portion at a time.
    ///
    /// - Parameters:
    ///   - version: the version of the place; nil takes that of the list.
    ///   - unpacker: the program that has unpacked the list.
    /// - Returns: the number of its entries, with faults and repeated ones.
    /// - Throws: `ManifestError` for a list that cannot be read.
    func list(
        _ bytes: [UInt8], _ reader: ServerList.Reader, version: String? = nil, unpacker: Unpacker? = nil
    ) async throws -> Int {
        var reader = reader
        var offset = 0
        while let (files, form) = try reader.next(of: bytes, &offset) {
            var page = SourcePage(files)
            page.form = form
            try await self(page)
        }
        var list = reader.list
        let count = reader.count + list.faultCount + list.repeatedCount
        var page = SourcePage(
            faults: list.faults.map { error in
                var fault = SourceFault("", error.reason, isIncomplete: false)
                fault.error = error
                return fault
            }, leftOut: list.passedOver, version: version ?? list.commit)
        page.form = list.form
        list.faultCount -= list.faults.count
        (list.faults, list.passedOver) = ([], [:])
        list.unpacker = unpacker
        page.list = list
        try await self(page)
        return count
    }
}

extension SourceClient {
    /// Pages that a closure makes one by one. It runs while the pages are read, and is cancelled when their reader is gone.
    public func pages(
        _ make: @escaping @Sendable (_ send: SourcePageSender) async throws -> Void
    ) -> AsyncThrowingStream<SourcePage, any Error> {
        let channel = PageChannel()
        let sender = SourcePageSender(channel: channel)
        let work = PageWork {
            Task {
                do {
                    try await channel.begin()
                    try await make(sender)
                    channel.end(.success(()))
                } catch {
                    channel.end(.failure(error))
                }
            }
        }
        return AsyncThrowingStream {
            work.start()
            return try await withTaskCancellationHandler {
                try await channel.next()
            } onCancel: {
                channel.end(.failure(CancellationError()))
            }
        }
    }
}

/// Cancels the work when its reader is gone.
private final class PageWork: Sendable {
    private let make: @Sendable () -> Task<Void, Never>
    private let task = Locked<Task<Void, Never>?>(nil)

    init(_ make: @escaping @Sendable () -> Task<Void, Never>) { self.make = make }

    func start() { task.withLock { if $0 == nil { $0 = make() } } }

    deinit { task.withLock(\.self)?.cancel() }
}

/// Passes one page at a time from the source to the reader. The source waits until a page is asked for.
private final class PageChannel: Sendable {
    private struct State {
        /// The reader that waits for a page.
        var reader: CheckedContinuation<SourcePage?, any Error>?
        /// The source that waits for the reader.
        var writer: CheckedContinuation<Void, any Error>?
        /// A page that the reader has not asked for yet.
        var page: SourcePage?
        var result: Result<Void, any Error>?
    }

    private let state = Locked(State())

    /// Waits for the first question.
    func begin() async throws { try await wait() }

    /// Hands a page over and waits for the next question.
    func send(_ page: SourcePage) async throws {
        let reader = state.withLock { state -> CheckedContinuation<SourcePage?, any Error>? in
            defer { state.reader = nil }
            if state.reader == nil { state.page = page }
            return state.reader
        }
        reader?.resume(returning: page)
        try await wait()
    }

    /// The next page; nil at the end.
    func next() async throws -> SourcePage? {
        try await withCheckedThrowingContinuation { continuation in
            let (writer, answer) = state.withLock {
                state -> (CheckedContinuation<Void, any Error>?, Result<SourcePage?, any Error>?) in
                if let page = state.page {
                    state.page = nil
                    return (nil, .success(page))
                }
                if let result = state.result { return (nil, result.map { nil }) }
                state.reader = continuation
                defer { state.writer = nil }
                return (state.writer, nil)
            }
            writer?.resume()
            if let answer { continuation.resume(with: answer) }
        }
    }

    /// Ends the pages. Only the first end counts.
    func end(_ result: Result<Void, any Error>) {
        let (reader, writer) = state.withLock {
            state -> (CheckedContinuation<SourcePage?, any Error>?, CheckedContinuation<Void, any Error>?) in
            guard state.result == nil else { return (nil, nil) }
            state.result = result
            defer { (state.reader, state.writer) = (nil, nil) }
            return (state.reader, state.writer)
        }
        reader?.resume(with: result.map { nil })
        writer?.resume(throwing: CancellationError())
    }

    private func wait() async throws {
        try await withTaskCancellationHandler {
            try await withCheckedThrowingContinuation { (continuation: CheckedContinuation<Void, any Error>) in
                let outcome = state.withLock { state -> Result<Void, any Error>? in
                    if state.result != nil || Task.isCancelled { return .failure(CancellationError()) }
                    if state.reader != nil { return .success(()) }
                    state.writer = continuation
                    return nil
                }
                if let outcome { continuation.resume(with: outcome) }
            }
        } onCancel: {
            end(.failure(CancellationError()))
        }
    }
}
