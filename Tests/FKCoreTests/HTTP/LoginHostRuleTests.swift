import Foundation
import TestSupport
import Testing

@testable import FKTransport

@Suite("Login hosts and their sessions")
struct LoginHostRuleTests {
    @Test(
        "a login goes to the host over https, and over http on this machine alone",
        arguments: [
            ("urs.example", "https://urs.example/oauth?x", true), ("urs.example", "https://URS.example:8443/", true),
            ("urs.example:8443", "https://urs.example/", false), ("urs.example", "http://urs.example/", false),
            ("urs.example", "https://www.urs.example/", false),
            ("urs.example", "https://urs.example.evil.test/", false),
            ("localhost", "http://localhost:8080/", true), ("127.0.0.1", "http://127.0.0.1/", true),
            ("[::1]:81", "http://[::1]:81/", true), ("urs.example", "https://urs.example@evil.test/", false),
        ])
    func place(_ host: String, _ url: String, _ isAt: Bool) throws {
        #expect(try #require(LoginHost(host)).isAt(url) == isAt)
    }

    @Test(arguments: ["", "http://h", "h/p", "a b", "u@h", "*.h", "h:99999"])
    func noHost(_ text: String) { #expect(LoginHost(text) == nil) }

    @Test("a session replaces the cookie of its place, and ends with the server's word") func sessions() throws {
        let folder = try TemporaryFolder()
        let file = SessionFile(folder.path + "/sessions")
        #expect(file.cookies() == [])
        let old = "#HttpOnly_h.test\tFALSE\t/\tTRUE\t0\tsession\told"
        let other = "login.test\tFALSE\t/\tTRUE\t0\turs\t1"
        let past = "h.test\tFALSE\t/\tTRUE\t1\tpast\t1"
        file.keep([old, other, past], ended: [])
        let new = "h.test\tFALSE\t/\tTRUE\t0\tsession\tnew"
        let changes = SessionFile.changes(from: [old, other], to: [new])
        #expect(changes.new == [new] && changes.ended == [other])
        file.keep(changes.new, ended: changes.ended)
        #expect(file.cookies() == [new])
        var status = stat()
        #expect(stat(folder.path + "/sessions", &status) == 0 && status.st_mode & 0o777 == 0o600)
    }

    @Test("libcurl's sentence about a cookie has no value") func trace() {
        let text = #"Added cookie session="a"b" for domain h.test, path /, expire 0"#
        #expect(
            TransportTrace.withoutCookie(text) == #"Added cookie session="***" for domain h.test, path /, expire 0"#)
        #expect(TransportTrace.withoutCookie("Connected to h.test") == "Connected to h.test")
    }

    @Test("a link and a file that others may read are no place for sessions") func safe() throws {
        let folder = try TemporaryFolder()
        let target = try folder.write([], to: "target").path
        try FileManager.default.createSymbolicLink(
            atPath: folder.path + "/sessions", withDestinationPath: target)
        SessionFile(folder.path + "/sessions").keep(["h\tFALSE\t/\tFALSE\t0\ta\tb"], ended: [])
        #expect(try folder.read("target") == [])
        let open = try folder.write([], to: "open").path
        #expect(chmod(open, 0o644) == 0)
        SessionFile(open).keep(["h\tFALSE\t/\tFALSE\t0\ta\tb"], ended: [])
        var status = stat()
        #expect(stat(open, &status) == 0 && status.st_mode & 0o777 == 0o600)
    }
}
