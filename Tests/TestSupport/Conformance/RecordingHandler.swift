import FKCore
import FKMiddleware

/// A transport handler that keeps everything it was told, notices calls that break the contract, and answers as the
/// test wants.
package final class RecordingHandler: TransportHandler {
    package struct Record: Sendable {
        package var head: ResponseHead?
        /// Filled at the end.
        package var body: [UInt8] = []
        package var bodyBytes: Int64 = 0
        /// How many pieces were offered, those answered with `.pause` included.
        package var pieces = 0
        /// The announced waits, and the pieces since the last one.
        package var waits = 0
        package var piecesSinceWait = 0
        package var result: Result<TransportSummary, DownloadError>?
        /// What the transport did that it must not.
        package var violations: [String] = []
        fileprivate var isInside = false

        package var summary: TransportSummary? { try? result?.get() }
        package var error: DownloadError? {
            if case .failure(let error) = result { error } else { nil }
        }
    }

    package let record = Observed(Record())
    private let keepsBody: Bool
    private let body = Locked<[UInt8]>([])
    private let onHead: @Sendable (ResponseHead) -> DownloadError?
    private let onBody: @Sendable (UnsafeRawBufferPointer, Record) -> BodyVerdict
    private let onWait: @Sendable (Record) -> DownloadError?
    private let onFinish: @Sendable () -> Void

    /// - Parameters:
    ///   - keepsBody: false only counts the bytes.
    ///   - onBody: gets a piece and the record without it.
    package init(
        keepsBody: Bool = true, onHead: @escaping @Sendable (ResponseHead) -> DownloadError? = { _ in nil },
        onBody: @escaping @Sendable (UnsafeRawBufferPointer, Record) -> BodyVerdict = { _, _ in .consumed },
        onWait: @escaping @Sendable (Record) -> DownloadError? = { _ in nil },
        onFinish: @escaping @Sendable () -> Void = {}
    ) {
        self.keepsBody = keepsBody
        self.onHead = onHead
        self.onBody = onBody
        self.onWait = onWait
        self.onFinish = onFinish
    }

    package func transport(didReceive head: ResponseHead) throws(DownloadError) {
        enter("head") { record in
            if record.head != nil { record.violations.append("a second head") }
            if record.pieces > 0 { record.violations.append("head after body") }
            record.head = head
        }
        defer { leave() }
        if let error = onHead(head) { throw error }
    }

    package func transport(didReceive bytes: UnsafeRawBufferPointer) -> BodyVerdict {
        let before = record.value
        enter("body") { record in
            if record.head == nil { record.violations.append("body before head") }
            if bytes.isEmpty { record.violations.append("an empty piece of body") }
            record.pieces += 1
            record.piecesSinceWait += 1
        }
        defer { leave() }
        let verdict = onBody(bytes, before)
        switch verdict {
        case .consumed, .enough:
            if keepsBody { body.withLock { $0 += bytes } }
            record.update { $0.bodyBytes += Int64(bytes.count) }
        case .pause, .fail: break
        }
        return verdict
    }

    package func transportWillWait() throws(DownloadError) {
        enter("wait") { record in
            if record.head == nil { record.violations.append("a wait before the head") }
            record.waits += 1
            record.piecesSinceWait = 0
        }
        defer { leave() }
        if let error = onWait(record.value) { throw error }
    }

    package func transportDidFinish(_ result: Result<TransportSummary, DownloadError>) {
        enter("end") { _ in }
        onFinish()
        record.update { record in
            record.isInside = false
            record.body = body.withLock { $0 }
            record.result = result
        }
    }

    /// A handler that answers every piece with `.pause` for as long as the flag is true.
    package static func pausing(while flag: Locked<Bool>) -> RecordingHandler {
        RecordingHandler(onBody: { _, _ in flag.withLock { $0 } ? .pause(nil) : .consumed })
    }

    /// A handler that answers the first piece with a pause of so many seconds.
    package static func pausing(once seconds: Double) -> RecordingHandler {
        RecordingHandler(onBody: { _, record in record.pieces == 0 ? .pause(.seconds(seconds)) : .consumed })
    }

    /// Waits for the end.
    @discardableResult
    package func finished() async -> Record {
        await record.wait { $0.result != nil }
    }

    private func enter(_ what: String, _ change: (inout Record) -> Void) {
        record.update { record in
            if record.isInside { record.violations.append("\(what) while another call runs") }
            if record.result != nil { record.violations.append("\(what) after the end") }
            record.isInside = true
            change(&record)
        }
    }

    private func leave() {
        record.update { $0.isInside = false }
    }
}
