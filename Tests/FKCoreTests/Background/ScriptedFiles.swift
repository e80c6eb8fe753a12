import TestSupport

/// A file transport in the test's hand: it records requests, and pieces arrive when the test says so.
final class ScriptedFiles: FileTransport {
    struct State {
        var report: (@Sendable (FileTransportEvent) -> Void)?
        var flying: [PieceKey: TransportRequest] = [:]
        /// Every request so far, in order.
        var started: [PieceKey] = []
        var cancelled: Set<PieceKey> = []
        var hasLeft = false
        var refusal: DownloadError?
    }

    let state = Observed(State())
    private let folder: TemporaryFolder
    private let adopts: Set<PieceKey>

    init(in folder: TemporaryFolder, adopts: Set<PieceKey> = []) {
        self.folder = folder
        self.adopts = adopts
    }

    /// Settings with this transport.
    func use(in configure: inout Configure, pieceSize: Int64 = 64 << 10) {
        var session = BackgroundSession(identifier: "test")
        session.pieceSize = pieceSize
        session.makeTransport = { [self] _, _ in self }
        configure.background = session
    }

    func refusal(of request: TransportRequest) -> DownloadError? { state.value.refusal }

    func adopt(_ report: @escaping @Sendable (FileTransportEvent) -> Void) {
        state.update { $0.report = report }
        report(.adopted(adopts))
    }

    func start(_ request: TransportRequest, piece: PieceKey) {
        state.update { state in
            state.flying[piece] = request
            state.started.append(piece)
        }
    }

    func cancel(_ pieces: Set<PieceKey>) {
        state.update { state in
            for key in pieces { state.flying[key] = nil }
            state.cancelled.formUnion(pieces)
        }
    }

    func leave() { state.update { $0.hasLeft = true } }

    // MARK: The test

    /// The requested ranges, in order.
    var ranges: [String] { state.value.started.map { $0.rangeHeader ?? "all" } }

    /// Returns the first request so far that is in flight and for this range.
    func request(_ range: String) async -> PieceKey {
        await state.wait { $0.flying.keys.contains { ($0.rangeHeader ?? "all") == range } }
            .flying.keys.first { ($0.rangeHeader ?? "all") == range }!
    }

    func report(_ event: FileTransportEvent) { state.value.report?(event) }

    /// Delivers an answer. The file is gone afterwards.
    func deliver(_ key: PieceKey, _ head: ResponseHead, _ body: some Sequence<UInt8>) throws {
        let file = try folder.write(Array(body), to: "delivery-\(UInt64.random(in: 0 ... .max))")
        state.update { $0.flying[key] = nil }
        report(.finished(key, head, file: file.path))
        try? FileManager.default.removeItem(at: file)
    }

    /// Delivers what a server with this file answers.
    func deliver(_ key: PieceKey, of content: [UInt8], tag: String? = "\"1\"") throws {
        let tags = tag.map { [HeaderField("ETag", $0)] } ?? []
        let url = "http://h.example/a"
        guard let end = key.end.map({ Int(min($0, Int64(content.count))) }) else {
            let fields = tags + [.init("Content-Length", "\(content.count)")]
            return try deliver(key, ResponseHead(status: 200, fields: fields, url: url), content)
        }
        let range = Int(key.start)..<end
        let fields =
            tags + [
                .init("Content-Range", "bytes \(range.lowerBound)-\(end - 1)/\(content.count)"),
                .init("Content-Length", "\(range.count)"),
            ]
        try deliver(key, ResponseHead(status: 206, fields: fields, url: url), content[range])
    }
}
