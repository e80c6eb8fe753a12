#if os(Linux)
    import TestSupport
    import Testing

    @testable import fk

    /// The tarball's program runs with the libcurl that is there: Debian's has versions of its symbols, others have none, and
    /// some are older than the headers that fk was built with.
    @Suite(
        "Other libcurls",
        .enabled(if: (Program.find("clang") ?? Program.find("cc")) != nil, "no C compiler makes the libraries"))
    struct OtherLibcurlTests {
        /// Folders with libraries that call this system's libcurl (`Packaging/portable/forward`).
        private static let made = Result {
            let folder = try TemporaryFolder()
            for (name, words) in [("plain", []), ("old", ["old"])] {
                try Program.run(
                    "bash", [Repository.url("Packaging/portable/forward").path, "\(folder.path)/\(name)"] + words)
            }
            return folder
        }

        private func sandbox(_ name: String) throws -> Sandbox {
            let folder = try Self.made.get().path
            return try Sandbox(environment: ["LD_LIBRARY_PATH": "\(folder)/\(name)"])
        }

        @Test(
            "a libcurl without symbol versions transfers, and an old one says its version", arguments: ["plain", "old"])
        func transfer(name: String) async throws {
            let sandbox = try sandbox(name)
            let server = try FaultServer()
            let bytes = [UInt8](repeating: 7, count: 3 << 20)
            server.route("/a") { .ranged(bytes, for: $0) }
            server.route("/b") { _ in .redirect(to: "/a") }
            try await sandbox.done("get", server.url("/b"), "-o", "b", "-x", "4")
            #expect(try sandbox.bytes("b") == bytes)
            let version = try await sandbox.done("--version").output
            #expect(version.contains("libcurl/7.76.1") == (name == "old"), "\(version)")
        }

        @Test("an old libcurl reports a silent server and one that is not there as a new one does")
        func silence() async throws {
            let sandbox = try sandbox("old")
            let server = try FaultServer()
            let gate = Gate()
            defer { gate.open() }
            server.route("/a") { _ in .ok([1, 2, 3]).stalling(at: 1, until: gate) }
            let silent = try await sandbox.fk("get", server.url("/a"), "--timeout", "1", "--retry", "0")
            #expect(silent.status == 1 && silent.errors.contains("1 s"), "\(silent.errors)")
            let gone = try await sandbox.fk("get", "http://127.0.0.1:9/a", "--retry", "0")
            #expect(gone.status == 1 && gone.errors.contains("could not be reached"), "\(gone.errors)")
        }

        /// libcurl before 7.80 cannot stop a request on an open connection: the socket is not opened.
        @Test(
            "with an old libcurl --no-private sends nothing to a name with a private address",
            arguments: ["plain", "old"])
        func privateAddress(name: String) async throws {
            let sandbox = try sandbox(name)
            let server = try FaultServer()
            let other = try FaultServer()
            let port = try #require(URLComponents(string: other.base)?.port)
            server.route("/a") { _ in .redirect(to: "http://files.example:\(port)/b") }
            other.route("/b") { _ in .ok([1]) }
            let words = [
                "get", server.url("/a"), "--resolve", "files.example:\(port):127.0.0.1", "--retry", "0", "-o", "a",
            ]
            let refused = try await sandbox.fk(words + ["--no-private"])
            #expect(refused.status == 1 && refused.errors.contains("private address"), "\(refused.errors)")
            #expect(other.requests.isEmpty)
            try await sandbox.done(words)
            #expect(try sandbox.bytes("a") == [1])
        }
    }
#endif
