import FKMiddleware

/// Fetches pieces of files for tasks, and gives finished files instead of bytes. Its requests survive its process: the next
/// one adopts them.
///
/// ```text
/// adopt -> adopted(pieces in flight) -> (start -> finished | failed)* -> allDelivered
/// ```
///
/// Requirements for implementations:
/// - `adopt` is called first, and once before each `leave`. Events come in order and never concurrently.
///   Some may come before `adopted`, but nothing is started before it.
/// - `start` and `cancel` never block. A piece ends with at most one `finished` or `failed` in a process; another process
///   may get it again. A cancelled piece ends with an event or without one.
/// - It follows redirects itself, and may ignore `secretHeaders`: `refusal` decides about that.
/// - A response with any status is `finished`.
package protocol FileTransport: AnyObject, Sendable {
    /// The reason why a request cannot be performed; nil if it can. Another transport then performs it.
    func refusal(of request: TransportRequest) -> DownloadError?
    /// Begins to report events, also those that happened while no process was there. `report` returns once the file of an
    /// event is not needed any more.
    func adopt(_ report: @escaping @Sendable (FileTransportEvent) -> Void)
    /// Fetches a piece.
    func start(_ request: TransportRequest, piece: PieceKey)
    /// Ends pieces that are in flight.
    func cancel(_ pieces: Set<PieceKey>)
    /// Ends the reports. Pieces in flight continue.
    func leave()
}

/// An event of a `FileTransport`.
package enum FileTransportEvent: Sendable {
    /// These pieces were requested by earlier processes and are in flight.
    case adopted(Set<PieceKey>)
    /// A response has ended. The file with its body exists only until the report returns, and may be missing already.
    case finished(PieceKey, ResponseHead, file: String)
    /// A request has failed.
    case failed(PieceKey, DownloadError)
    /// All events of a session that woke the application were reported.
    case allDelivered(identifier: String)
}

/// A session with the system that continues downloads while the application is suspended or ended
/// (`URLSessionConfiguration.background`). On Linux, only FKTesting's `SystemModel` makes one that works; any other is refused.
public struct BackgroundSession: Sendable {
    /// The session's identifier, unique in the application. The system passes it to
    /// `application(_:handleEventsForBackgroundURLSession:completionHandler:)`.
    public var identifier: String
    /// The maximum number of bytes of one request, 64 KiB to 1 TiB. The default is 64 MiB. An interrupted request loses its bytes.
    public var pieceSize: Int64 = 64 << 20
    /// True lets the system choose the time (`URLSessionConfiguration.isDiscretionary`). The default is false.
    public var isDiscretionary = false
    /// The application group whose container has the system's files; nil, the default, for the application's own.
    public var sharedContainer: String?
    /// Makes the transport.
    package var makeTransport: @Sendable (BackgroundSession, Networks) -> (any FileTransport)? = Self.standard {
        didSet { hasOwnTransport = true }
    }
    private var hasOwnTransport = false

    /// Why this system cannot honour the session; nil if it can.
    package var fault: String? {
        #if canImport(Darwin)
            return nil
        #else
            guard !hasOwnTransport else { return nil }
            return "background is set, and this system has no session that outlives a process: leave it nil"
        #endif
    }

    /// Creates a session.
    public init(identifier: String) { self.identifier = identifier }

    private static let standard: @Sendable (BackgroundSession, Networks) -> (any FileTransport)? = {
        session, networks in
        #if canImport(Darwin)
            SessionFileTransport.shared(session, networks)
        #else
            nil
        #endif
    }
}
