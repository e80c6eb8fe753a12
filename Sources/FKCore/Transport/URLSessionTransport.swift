import Dispatch
import FKMiddleware
import Foundation

/// The transport over Foundation's URLSession: for systems without libcurl, and the second implementation that keeps
/// `Transport` honest. Docs/Transports.md says what it can and cannot do.
///
/// - Every running transfer has a session of its own, taken from a pool, so that one can be held back without the
///   others; a connection is reused by the next transfer to the same origin. Requests of HTTP/2 do not share one.
/// - On Linux all sessions of a process work on one queue of Foundation's. Callbacks come on it, so a handler that
///   blocks holds up every transfer of the process, and everybody else who uses URLSession.
/// - An option that URLSession cannot keep ends the transfer with `.invalidArgument` before anything is sent:
///   `URLSessionOptions` has the list.
/// - `TransportOptions.stallTimeout` counts from the start, the time to connect included: URLSession does not tell when
///   a connection is there, so `connectTimeout` has no effect of its own.
/// - `ResponseHead.httpVersion` is always `1.1`, and the fields are in alphabetical order, those of one name joined:
///   URLSession does not tell. A body without a length therefore counts as not verified, also over HTTP/2.
public final class URLSessionTransport: Transport {
    /// Which networks may be used. On Linux it has no effect: there is nothing that tells them apart.
    ///
    /// FKDownloader's background sessions have no place here: the system carries them out with download tasks, which
    /// hand over a finished file instead of bytes, so that nothing could be resumed, joined or verified by the engine.
    public struct Networks: Sendable, Hashable {
        /// Mobile networks. Default true.
        public var allowsCellular = true
        /// Networks in Low Data Mode. Default true.
        public var allowsConstrained = true
        /// Networks that the system counts as expensive, such as mobile ones and personal hotspots. Default true.
        public var allowsExpensive = true
        /// The transfers are nobody's hurry: the system gives them the background class of traffic, and lets them wait
        /// for a connection instead of failing at once. Default false.
        public var isBackground = false

        /// The defaults.
        public init() {}
    }

    private let hub: URLSessionHub

    /// Starts nothing yet: the first session comes with the first transfer.
    public init(networks: Networks = Networks()) {
        hub = URLSessionHub(networks: networks)
    }

    deinit {
        hub.stop()
    }

    /// As `Transport.start`. After `shutdown` the transfer ends with `.cancelled`.
    public func start(_ request: TransportRequest, handler: any TransportHandler) -> any TransportOperation {
        let transfer = URLSessionTransfer(request, handler: handler, hub: hub)
        hub.start(transfer)
        return URLSessionOperation(transfer)
    }

    /// Cancels what runs and waits until every handler has had its end. From inside a callback it does not wait.
    public func shutdown() {
        hub.stop()
        hub.wait()
    }
}

/// Does not keep a transfer alive that has ended.
private final class URLSessionOperation: TransportOperation {
    // `Locked` because a weak variable cannot be constant.
    private let transfer: Locked<Weak>

    private struct Weak {
        weak var transfer: URLSessionTransfer?
    }

    init(_ transfer: URLSessionTransfer) { self.transfer = Locked(Weak(transfer: transfer)) }

    func cancel() { transfer.withLock { $0.transfer }?.cancel() }
    func resume() { transfer.withLock { $0.transfer }?.resume() }
}
