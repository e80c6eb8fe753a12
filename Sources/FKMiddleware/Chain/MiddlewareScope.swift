import Foundation

/// The tasks that a middleware handles.
///
/// ```swift
/// chains.register(request: SigningMiddleware(key: key), for: .host("files.example.com"))
/// chains.register(response: UnzipMiddleware(), for: .barrel("books"))
/// chains.register(download: counter, for: .matching { $0.attributes["kind"] == "video" })
/// ```
///
/// The scope is checked each time the chain is about to run, so a task that joins or leaves a barrel changes its
/// middlewares with the next request, report or end. Scopes do not change the order: the chain runs by priority across
/// all scopes, and in registration order when priorities are equal.
public struct MiddlewareScope: Sendable {
    private enum Kind {
        case all
        case barrel(String)
        case host(String)
        case task(TaskID)
        case matching(@Sendable (TaskContext) -> Bool)
    }

    private let kind: Kind

    /// Every task. The default of all registrations.
    public static let all = MiddlewareScope(kind: .all)

    /// The members of a barrel. It need not exist yet. Names are compared byte by byte.
    public static func barrel(_ name: String) -> MiddlewareScope { MiddlewareScope(kind: .barrel(name)) }

    /// The tasks of one host, on every port. The case, a port and a final dot of `name` are ignored, and a name outside
    /// ASCII equals its IDNA form (`xn--…`). Subdomains are other hosts: use `matching` for them.
    ///
    /// For a request middleware the host is the one that the attempt asks, which may be a mirror's; a middleware for one
    /// host never handles a request to another one, also not one that a middleware before it has sent there. For download and
    /// response middlewares it is the host of the task's own URL. Redirects do not count.
    public static func host(_ name: String) -> MiddlewareScope { MiddlewareScope(kind: .host(hostName(name))) }

    /// A single task. It need not exist yet.
    public static func task(_ id: TaskID) -> MiddlewareScope { MiddlewareScope(kind: .task(id)) }

    /// The tasks for which `includes` returns true.
    ///
    /// - Parameter includes: runs on the engine's thread, perhaps several times for one file. It must return at once
    ///   and depend on the context alone.
    public static func matching(_ includes: @escaping @Sendable (TaskContext) -> Bool) -> MiddlewareScope {
        MiddlewareScope(kind: .matching(includes))
    }

    package var isAll: Bool {
        if case .all = kind { true } else { false }
    }

    /// The host of `.host`, as `hostName` returns it; nil for any other scope.
    var host: String? {
        if case .host(let name) = kind { name } else { nil }
    }

    /// Decides whether the scope includes a task.
    ///
    /// - Parameter url: the URL whose host counts; nil, the default, takes the task's own.
    package func includes(_ task: TaskContext, url: String? = nil) -> Bool {
        switch kind {
        case .all: true
        case .barrel(let name): task.barrels.containsExactly(name)
        case .host(let name): Self.hostName(of: url ?? task.address).isExactly(name)
        case .task(let id): task.id == id
        case .matching(let includes): includes(task)
        }
    }

    // MARK: Hosts

    /// The host of a URL in the form that is compared; empty for a URL without one.
    static func hostName(of url: String) -> String { hostName(String(URLParts(url).hostPort)) }

    /// A host in the form that is compared: lower case, IDNA, without port, brackets and final dot.
    static func hostName(_ text: String) -> String {
        var host = Substring(text)
        if host.first == "[", let end = host.firstIndex(of: "]") {
            host = host[..<end].dropFirst()
        } else if let colon = host.firstIndex(of: ":"), host.lastIndex(of: ":") == colon {
            // With more than one colon it is an IPv6 address without its brackets.
            host = host[..<colon]
        }
        var name = String(host)
        if !name.utf8.allSatisfy({ $0 < 0x80 }) {
            name = URLComponents(string: "http://\(name)/")?.encodedHost ?? name
        }
        name = name.lowercased()
        if name.utf8.last == UInt8(ascii: ".") { name.removeLast() }
        return name
    }
}
