#if canImport(CLibcurl)
    import CLibcurl
    import Dispatch
    import FKMiddleware
    import Foundation

    /// The transport over libcurl: all transfers on one thread of its own, which delivers the bytes from libcurl's
    /// buffer without a copy.
    ///
    /// - Connections, name lookups, TLS sessions and libcurl's handles are reused; how many connections a host gets is
    ///   the caller's to limit. HTTP/2 requests to one host share a connection.
    /// - The thread starts with the first transfer. It uses no processor time while nothing arrives.
    /// - Callbacks come on that thread, so a handler that blocks holds up all transfers. A handler may call `start`,
    ///   `cancel`, `resume` and `shutdown` from inside a callback.
    /// - `TransportOptions.stallTimeout` counts from the moment the request is sent: the complete head must arrive within
    ///   it, whatever interim responses (1xx) come before, and then a byte of the body within it again and again. Paused
    ///   time does not count.
    public final class CurlTransport: Transport {
        /// The size of libcurl's receive buffer in bytes.
        static let receiveBufferSize = 512 << 10

        private let inbox = CurlInbox()
        private let thread = WorkThread()
        private let running = DispatchGroup()

        /// Starts nothing yet: the thread comes with the first transfer.
        public init() {}

        deinit {
            inbox.stop()
        }

        /// As `Transport.start`. After `shutdown` the transfer ends with `.cancelled`.
        public func start(_ request: TransportRequest, handler: any TransportHandler) -> any TransportOperation {
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

        /// Cancels what runs and waits until every handler has had its end and the thread is gone. From inside a
        /// callback it does not wait.
        public func shutdown() {
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

        /// A TLS connection that the server has closed raises SIGPIPE on write; blocked, it becomes an error.
        private static func blockBrokenPipeSignal() {
            var signals = sigset_t()
            sigemptyset(&signals)
            sigaddset(&signals, SIGPIPE)
            pthread_sigmask(SIG_BLOCK, &signals, nil)
        }

        /// libcurl's global state, made once per process and never taken down, since others may use it.
        static let isLibraryReady = curl_global_init(Int(CURL_GLOBAL_DEFAULT)) == CURLE_OK
    }

    /// A number that the transport's thread looks up; a number that has ended is simply not found.
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
