import FKEngine

/// A transport of the application, which its users do not shut down.
final class SharedTransport: Transport {
    private let transport: any Transport

    init(_ transport: any Transport) { self.transport = transport }

    func start(_ request: TransportRequest, handler: any TransportHandler) -> any TransportOperation {
        transport.start(request, handler: handler)
    }

    func shutdown() {}
}
