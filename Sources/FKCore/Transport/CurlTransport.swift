#if canImport(CLibcurl)
    import CLibcurl
    import Dispatch
    import FKMiddleware
    import Foundation

    /// A transport over libcurl. All transfers run on one thread of its own, which passes the bytes of libcurl's
    /// buffer on without copying them.
    ///
    /// - Connections, name lookups, TLS sessions and handles of libcurl are reused. The caller limits the number of
    ///   connections to a host. HTTP/2 requests to one host share a connection.
    /// - The thread starts with the first transfer. It uses no processor time while nothing arrives.
    /// - Callbacks run on that thread, so a handler that blocks delays all transfers. A handler may call `start`,
    ///   `cancel`, `resume` and `shutdown` from a callback.
    /// - `TransportOptions.stallTimeout` starts when the request is sent. The complete head must arrive within it,
    ///   whatever interim responses (1xx) come first; then each byte of the body must arrive within it after the
    ///   previous one. Paused time does not count.
    package final class CurlTransport: Transport {
        /// The size of libcurl's receive buffer in bytes.
        static let receiveBufferSize = 512 << 10

        private let inbox = CurlInbox()
        private let thread = WorkThread()
        private let running = DispatchGroup()

        /// Creates a transport. The thread starts with the first transfer.
        package init() {}

        deinit {
            inbox.stop()
        }

        /// Same as `Transport.start`. After `shutdown`, the transfer ends with `.cancelled`.
        package func start(_ request: TransportRequest, handler: any TransportHandler) -> any TransportOperation {
            var request = request
            if request.prefersHTTP1, request.options.httpVersion == .automatic { request.options.httpVersion = .http1 }
            guard let (id, isFirst) = inbox.start(.init(request: request, handler: handler), onFirst: running.enter)
            else {
                DispatchQueue.global().async { handler.transportDidFinish(.failure(CurlLoop.cancelled)) }
                return CurlOperation(id: 0, inbox: inbox)
            }
            if isFirst { startThread() }
            return CurlOperation(id: id, inbox: inbox)
        }

        /// Cancels all transfers and waits until every handler has been finished and the thread has ended. Called
        /// from a callback, it does not wait.
        package func shutdown() {
            inbox.stop()
            guard !thread.isCurrent else { return }
            running.wait()
            thread.join()
        }

        private func startThread() {
            thread.start(name: "fk.transport") { [inbox, running] in
                Self.blockBrokenPipeSignal()
                CurlLoop.run(inbox)
                running.leave()
            }
        }

        /// Writing to a TLS connection that the server has closed raises SIGPIPE. Blocking the signal turns it into
        /// an error.
        private static func blockBrokenPipeSignal() {
            var signals = sigset_t()
            sigemptyset(&signals)
            sigaddset(&signals, SIGPIPE)
            pthread_sigmask(SIG_BLOCK, &signals, nil)
        }

        /// libcurl's global state, initialised once per process. It is never released, because other code may use it.
        static let isLibraryReady = curl_global_init(Int(CURL_GLOBAL_DEFAULT)) == CURLE_OK
    }

    /// Identifies a transfer by a number. The transport's thread ignores the number of an ended transfer.
    private final class CurlOperation: TransportOperation {
        private let id: UInt64
        private let inbox: CurlInbox

        init(id: UInt64, inbox: CurlInbox) {
            self.id = id
            self.inbox = inbox
        }

        func cancel() { inbox.post(.cancel(id)) }
        func resume() { inbox.post(.resume(id)) }
    }
#endif
