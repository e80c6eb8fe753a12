import FKMiddleware

/// How the requests of a task connect, for the requests that its middlewares send to other servers, such as those for a token.
package enum ConnectionOptions {
    /// Those of the task whose request chain runs; nil elsewhere.
    @TaskLocal package static var ofChain: TaskOptions?
}

extension TaskOptions {
    /// The proxy, the trust and the route of these transport options. Secrets, and the keys of a single server, are left out.
    package init(connectionOf options: TransportOptions) {
        self.init()
        proxy = options.proxy
        caPath = options.caPath
        insecure = options.insecure ? true : nil
        httpVersion = options.httpVersion == .automatic ? nil : options.httpVersion
        dnsServers = options.dnsServers
        dohURL = options.dohURL
        addressFamily = options.addressFamily
        interface = options.interface
        hostAddresses = options.hostAddresses
    }

    /// The proxy, the trust and the route of these options.
    package var connection: TaskOptions { TaskOptions(connectionOf: transportOptions(over: TransportOptions())) }
}
