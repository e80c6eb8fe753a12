import TestSupport
import Testing

@testable import fk

/// A server that sends everybody to a login host, as NASA Earthdata does: `127.0.0.1` has the data, `localhost` the logins.
@Suite("A login host")
struct LoginHostTests {
    private static let body = Bytes.pattern(count: 5_000)
    private static let password = "canary0123456789"

    private let data: FaultServer
    private let login: FaultServer
    private let home: TemporaryFolder
    private let sandbox: Sandbox

    init() throws {
        let (data, login) = (try FaultServer(), try FaultServer())
        (self.data, self.login) = (data, login)
        home = try TemporaryFolder()
        let netrc = try home.write(
            "machine localhost login me password \(Self.password)\nmachine 127.0.0.1 login me password wrong\n",
            ".netrc")
        #expect(chmod(netrc, 0o600) == 0)
        sandbox = try Sandbox(environment: ["HOME": home.path])
        let loginBase = "http://localhost:\(login.port)"
        data.routeOthers { request in
            guard request["Cookie"]?.contains("session=s3ss10n") == true else {
                return .redirect(to: "\(loginBase)/oauth?to=\(request.path)")
            }
            return .ok(Self.body)
        }
        data.route("/enter") { request in
            .redirect(to: "/a.bin").setting("Set-Cookie", "session=s3ss10n; Path=/; HttpOnly")
        }
        let enter = data.url("/enter?code=c0de")
        login.routeOthers { request in
            guard request["Authorization"] != nil else { return .status(401) }
            return .redirect(to: enter).setting("Set-Cookie", "urs=1; Path=/")
        }
    }

    private var sessions: String { sandbox.workPath + "/sessions" }

    @Test("the login goes to the login host alone; the session is kept, 0600, and used again") func session()
        async throws
    {
        let words = ["-H", "X-Api-Key: k", "--login-host", "localhost"]
        try await sandbox.done(["get", data.url("/a.bin")] + words)
        #expect(login.requests.count == 1 && login.requests[0]["Authorization"]?.hasPrefix("Basic ") == true)
        #expect(login.requests[0]["X-Api-Key"] == nil)
        #expect(data.requests.allSatisfy { $0["Authorization"] == nil })
        // The header belongs to the origin, and does not come back from the login host.
        #expect(data.requests.map { $0["X-Api-Key"] != nil } == [true, false, false])
        var status = stat()
        #expect(stat(sessions, &status) == 0 && status.st_mode & 0o777 == 0o600)
        #expect(try sandbox.folder.text("work/sessions").contains("session\ts3ss10n"))
        let found = try await FKProgram.run(
            "/usr/bin/grep", ["-rlE", "s3ss10n|c0de|\(Self.password)", sandbox.workPath], environment: [:])
        #expect(found.output == sessions + "\n", "\(found.output)")
        // The next command has the session.
        try await sandbox.done(["get", data.url("/b.bin"), "--login-host", "localhost:\(login.port)"])
        #expect(login.requests.count == 1)
        #expect(try await sandbox.done("why", "b.bin").output.contains("redirects may authenticate at localhost"))
        // Without the login host it has not.
        #expect(try await sandbox.fk("get", data.url("/c.bin"), "--retry", "0").status == 1)
        #expect(login.requests.last?["Authorization"] == nil && login.requests.last?["Cookie"] == nil)
        let told = try await sandbox.fk("get", data.url("/d.bin"), "--retry", "0")
        #expect(told.errors.contains("--login-host localhost logs in there"), "\(told.errors)")
    }

    @Test("a policy of the host names it, for commands without the option") func policy() async throws {
        try await sandbox.done("config", "host", "127.0.0.1", "--login-host", "localhost")
        #expect(try await sandbox.done("config", "host").output == "127.0.0.1 --login-host localhost\n")
        try await sandbox.done("get", data.url("/a.bin"))
        let why = try await sandbox.done("why", "a.bin").output
        #expect(why.contains("redirects may authenticate at localhost, by the policy of 127.0.0.1"), "\(why)")
        try await sandbox.done("config", "host", "127.0.0.1", "--login-host", "none")
        #expect(try await sandbox.done("config", "host").output == "")
    }

    @Test("another port of the login host, and a mirror's redirects, get no login") func others() async throws {
        let port = "localhost:\(login.port == 1 ? 2 : 1)"
        #expect(
            try await sandbox.fk(["get", data.url("/a.bin"), "--retry", "0", "--login-host", port]).status == 1)
        // A mirror has another origin than the task.
        let dead = "http://127.0.0.1:1/d.bin"
        #expect(
            try await sandbox.fk([
                "get", dead, "--mirror", data.url("/d.bin"), "--retry", "1", "--login-host", "localhost",
            ]).status == 1)
        #expect(login.requests.allSatisfy { $0["Authorization"] == nil })
        #expect(!FileManager.default.fileExists(atPath: sessions))
    }

    @Test("a host without a login in ~/.netrc, and a text that is no host, are refused before a request")
    func refused() async throws {
        let missing = try await sandbox.fk("get", data.url("/a.bin"), "--login-host", "urs.example")
        #expect(missing.status == 2 && missing.errors.contains("has no login for urs.example"), "\(missing.errors)")
        #expect(try await sandbox.fk("get", data.url("/a.bin"), "--login-host", "http://x/").status == 2)
        #expect(data.requests.isEmpty)
    }
}
