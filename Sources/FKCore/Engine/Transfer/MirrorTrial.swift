import FKMiddleware

/// Requests a few bytes from a mirror that are stored already, to find out whether its file is the same.
///
/// The transport's thread calls it until `onEnd`; afterwards the engine reads it.
final class MirrorTrial: TransportHandler, @unchecked Sendable {
    // Sendable because the mutable members belong to the transport's thread until `onEnd` is called, and to the
    // engine afterwards. The lock of the engine's inbox hands them over.

    /// The offset of the bytes in the file.
    let start: Int64
    /// The bytes in the part file.
    let held: [UInt8]
    private(set) var head: ResponseHead?
    private(set) var received: [UInt8] = []
    private(set) var failure: DownloadError?
    private let onEnd: @Sendable (MirrorTrial) -> Void

    /// Creates a trial with stored bytes.
    ///
    /// - Parameter onEnd: called exactly once, last.
    init(start: Int64, held: [UInt8], onEnd: @escaping @Sendable (MirrorTrial) -> Void) {
        self.start = start
        self.held = held
        self.onEnd = onEnd
    }

    func transport(didReceive head: ResponseHead) { self.head = head }

    func transport(didReceive bytes: UnsafeRawBufferPointer) -> BodyVerdict {
        received.append(contentsOf: bytes.prefix(held.count - received.count))
        return received.count < held.count ? .consumed : .enough
    }

    func transportDidFinish(_ result: Result<TransportSummary, DownloadError>) {
        if case .failure(let error) = result { failure = error }
        onEnd(self)
    }

    enum Verdict: Hashable {
        /// The file is the same. The validator is the mirror's own.
        case same(Validator)
        /// The file is taken for the same after this sample, which proves nothing (`MirrorPolicy.combine`).
        case trusted(Validator)
        /// The compared bytes are a run of one value, which any two files may contain.
        case provesNothing
        case refused(reason: String)
    }

    /// Evaluates the response.
    ///
    /// - Parameters:
    ///   - version: the version of the file being fetched, from another source.
    ///   - source: the mirror.
    func verdict(_ version: FileVersion, source: String, policy: MirrorPolicy) -> Verdict {
        guard let head else { return .refused(reason: failure?.message ?? "it did not answer") }
        guard head.status == 206, let answer = head["Content-Range"].flatMap(ContentRange.init),
            answer.unit == "bytes", let range = answer.range
        else { return .refused(reason: "it answers \(head.status), not with the bytes asked for") }
        guard let total = answer.total else { return .refused(reason: "the length of the file there is not known") }
        guard total == version.length else {
            let own = version.length.map { "\($0)" } ?? "an unknown number"
            return .refused(reason: "the file there has \(total.plural("byte")), the one begun has \(own)")
        }
        guard range.first == start, received.count == held.count else {
            return .refused(reason: "it sent the bytes from \(range.first), \(received.count) of \(held.count)")
        }
        let own = Validator(head)
        let joining = version.joins(FileVersion(head, source: source))
        if joining == .refuted(by: .coding) {
            return .refused(reason: "it encodes the body in another way than the server of the stored bytes")
        }
        guard version.isVouched || own.strong != nil else {
            return .refused(reason: "it has no strong validator: ranges could be of several versions")
        }
        if case .refuted = joining { return .refused(reason: "the file there has another digest") }
        guard received == held else {
            return .refused(reason: "the bytes from \(start) are not the ones we hold: another file")
        }
        if case .proven = joining { return .same(own) }
        guard FileVersion.whenUnknown(.beside, policy) == .trustSample else {
            return .refused(
                reason: "nothing proves that its file is the same: no digest, and neither entity tag nor date are equal"
            )
        }
        return Set(held).count > 1 ? .trusted(own) : .provesNothing
    }
}
