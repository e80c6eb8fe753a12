import Foundation

/// The settings of the RPC, which do not change while it runs.
package struct RPCSettings: Sendable {
    /// The folders that downloads may be stored in, as absolute paths. The first is the default.
    package var folders: [String]
    /// The secret of every call; nil serves everybody.
    package var secret: String?
    /// The options for new tasks before clients change them.
    package var options: [String: String] = [:]
    /// The path of the program `fk`, which lists sources and publishes bundles; nil without one.
    package var tool: String?
    /// True if downloads follow no redirect to private addresses. The program that lists sources is then told so.
    package var refusesPrivate = false
    /// Waits before a refused call is answered. The default is a second.
    package var refusalDelay: @Sendable () async -> Void = { try? await Task.sleep(for: .seconds(1)) }
    package var log: @Sendable (String) -> Void = { _ in }
    /// Called when much memory has been freed: when no task has run for some seconds, once after each time that one has run, and after
    /// long requests.
    package var onIdle: @Sendable () -> Void = {}
    /// Called once when a client asks the process to end. `isForced` is true for `aria2.forceShutdown`.
    package var onShutdown: @Sendable (_ isForced: Bool) -> Void = { _ in }

    package init(folders: [String], secret: String?) {
        self.folders = folders
        self.secret = secret
    }
}

/// A WebSocket of a client, or another receiver of notifications.
package final class RPCPeer: Sendable, Hashable {
    /// Sends a message. It returns at once, and a message to a closed connection is dropped.
    package let send: @Sendable ([UInt8]) -> Void

    package init(send: @escaping @Sendable ([UInt8]) -> Void) { self.send = send }

    package static func == (one: RPCPeer, other: RPCPeer) -> Bool { one === other }
    package func hash(into hasher: inout Hasher) { hasher.combine(ObjectIdentifier(self)) }
}

/// Who calls.
package struct RPCCaller: Sendable {
    /// The WebSocket of the call; nil for HTTP.
    package var peer: RPCPeer?
    /// False if only methods that ask may run without a secret.
    package var mayChange: Bool

    package init(peer: RPCPeer? = nil, mayChange: Bool = true) {
        self.peer = peer
        self.mayChange = mayChange
    }
}

/// An answer to a request.
package struct RPCAnswer: Sendable {
    /// The HTTP status: 200, 400 or 404.
    package var status: Int
    /// JSON.
    package var body: [UInt8]
    /// True if a call of the request had the right secret, or if none is needed.
    package var isAdmitted: Bool
    package init(status: Int, body: [UInt8], isAdmitted: Bool = false) {
        self.status = status
        self.body = body
        self.isAdmitted = isAdmitted
    }

    /// The answer to a request that is no call.
    init(_ error: RPCError) { self.init(status: error.status, body: error.answer) }
}

/// Compares secrets in a time that depends on their lengths only.
enum SecretCheck {
    static func isEqual(_ given: String, _ secret: String) -> Bool {
        let given = Array(given.utf8)
        let secret = Array(secret.utf8)
        var difference: UInt8 = given.count == secret.count ? 0 : 1
        for index in given.indices { difference |= given[index] ^ (secret.isEmpty ? 1 : secret[index % secret.count]) }
        return difference == 0
    }
}
