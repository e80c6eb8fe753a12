import Dispatch
import FKMiddleware
import Foundation

/// A transport over Foundation's URLSession, for systems without libcurl. As the second implementation, it also tests
/// the `Transport` protocol. Docs/Transports.md describes its limits.
///
/// - Every running transfer has its own session from a pool, so that it can be held back alone. The next transfer to
///   the same origin reuses the connection. HTTP/2 requests do not share one.
/// - On Linux all sessions of a process work on one queue of Foundation's. Callbacks run on it, so a handler that
///   blocks delays every transfer of the process and all other users of URLSession.
/// - An option that URLSession does not support ends the transfer with `.invalidArgument` before anything is sent;
///   `URLSessionOptions` lists them.
/// - `TransportOptions.stallTimeout` starts with the transfer and includes the time to connect: URLSession does not
///   report the connection, so `connectTimeout` has no effect of its own.
/// - `ResponseHead.httpVersion` is always `1.1`, and the fields are sorted by name and joined if repeated, because
///   URLSession does not report more. A body without a length therefore counts as not verified, also over HTTP/2.
package final class URLSessionTransport: Transport {
    private let hub: URLSessionHub

    /// Creates a transport. The first session is created with the first transfer.
    package init(networks: Networks = Networks()) {
        hub = URLSessionHub(networks: networks)
    }

    deinit {
        hub.stop()
    }

    /// Same as `Transport.start`. After `shutdown`, the transfer ends with `.cancelled`.
    package func start(_ request: TransportRequest, handler: any TransportHandler) -> any TransportOperation {
        let transfer = URLSessionTransfer(request, handler: handler, hub: hub)
        hub.start(transfer)
        return URLSessionOperation(transfer)
    }

    /// Cancels all transfers and waits until every handler has been finished. Called from a callback, it does not
    /// wait.
    package func shutdown() {
        hub.stop()
        hub.wait()
    }
}

/// The networks that transfers over URLSession may use (`Configure.networks`). libcurl does not tell networks apart, and no transport
/// on Linux does: other values than the defaults are refused there.
public struct Networks: Sendable, Hashable {
    /// Whether mobile networks may be used. The default is true.
    public var allowsCellular = true
    /// Whether networks in Low Data Mode may be used. The default is true.
    public var allowsConstrained = true
    /// Whether networks that the system counts as expensive may be used, such as mobile ones and personal
    /// hotspots. The default is true.
    public var allowsExpensive = true
    /// Whether transfers have low urgency: the system gives them the background class of traffic and lets them
    /// wait for a connection instead of failing at once. The default is false.
    public var isBackground = false

    package init() {}
}

/// It does not retain a transfer that has ended.
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
