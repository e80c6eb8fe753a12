/// The origin of a statement about a file.
///
/// Every speaker may state facts: names, sizes, digests, addresses. Only the owner gives orders: folders, header fields, logins,
/// proxies, limits, and whether an existing file is replaced.
package enum Speaker: Sendable, Hashable, Codable {
    /// The user or the application: a command, a call, or a list file on this machine that one of them has named.
    case owner
    /// A list that a server sent, by its URL or name.
    case list(String)
    /// A server's response, by its URL.
    case server(String)
    /// A middleware program, by its name.
    case program(String)

    package var mayOrder: Bool { self == .owner }
}
