import Foundation
import TestSupport
import Testing

@testable import fk

/// How a request reaches its server, how long it may take, and what is shown of it.
@Suite("-4, -6, --interface, --resolve, --max-time and -v")
final class RouteOptionTests: ServedSuite {
    private let body = Bytes.pattern(count: 20_000)

    override init() throws {
        try super.init()
        server.serve("/a.bin", body)
    }

    private var port: String { String(server.url("").split(separator: ":").last ?? "") }

    @Test("--resolve connects to the address, and the server hears the name", arguments: ["name.test", "*"])
    func resolve(host: String) async throws {
        let url = "http://name.test:\(port)/a.bin"
        try await sandbox.done("get", "--resolve", "\(host):\(port):127.0.0.1", url)
        #expect(try sandbox.bytes("a.bin") == body)
        #expect(server.requests("/a.bin").map { $0["Host"] } == ["name.test:\(port)"])
        // One command's address is not another's.
        let other = try await sandbox.fk(
            "get", "--retry", "0", "-o", "b.bin", "--resolve", "other.test:1:127.0.0.1", url)
        #expect(other.status == 1)
    }

    @Test(
        "An address that is none is refused",
        arguments: ["name.test", "h:1", "h:x:127.0.0.1", "h:0:127.0.0.1", "h:1:name"])
    func wrongAddress(text: String) async throws {
        let result = try await sandbox.fk("get", "--resolve", text, server.url("/a.bin"))
        #expect(
            result.status == 2 && result.errors.contains("--resolve") && result.errors.contains("HOST:PORT:ADDRESS"))
    }

    @Test("-4 and --interface reach the server, -6 does not, both are one too many")
    func family() async throws {
        try await sandbox.done("get", "-4", "--interface", "127.0.0.1", server.url("/a.bin"))
        #expect(try await sandbox.fk("get", "-6", "--retry", "0", "-o", "b", server.url("/a.bin")).status == 1)
        let both = try await sandbox.fk("get", "-46", server.url("/a.bin"))
        #expect(both.status == 2 && both.errors.contains("--ipv4 and --ipv6"))
        let none = try await sandbox.fk(
            "get", "--retry", "0", "-o", "c", "--interface", "nosuch0", server.url("/a.bin"))
        #expect(none.status == 1 && none.errors.contains("interface"))
    }

    @Test("--max-time ends the file, keeps its bytes, and says what to do; the next command has all the time")
    func maxTime() async throws {
        let gate = Gate()
        server.serve("/slow", body, stallingAt: 10_000, gate)
        let result = try await sandbox.fk("get", "--max-time", "1", server.url("/slow"))
        #expect(result.status == 1 && result.errors.contains("--max-time") && !result.errors.contains("`"))
        #expect(try sandbox.reader.records(url: server.url("/slow")).first?.received == 10_000)
        gate.open()
        try await sandbox.done("get", server.url("/slow"))
        #expect(try sandbox.bytes("slow") == body)
    }

    @Test("--max-time counts from the start of each run: a barrel with it is fetched later, and a failed file retried")
    func maxTimeOfRuns() async throws {
        let gate = Gate()
        server.serve("/slow", body, stallingAt: 10_000, gate)
        try await sandbox.done("barrel", "create", "b", "--max-time", "2", "-d", "d", server.url("/slow"))
        let late = try await sandbox.fk("barrel", "run", "b")
        #expect(late.status == 1 && late.errors.contains("time limit"), "\(late.errors)")
        gate.open()
        try await sandbox.done("retry", "--all", "--run")
        try await sandbox.done("barrel", "add", "b", server.url("/a.bin"))
        try await sandbox.done("barrel", "run", "b")
        #expect(try sandbox.bytes("d/slow") == body && sandbox.bytes("d/a.bin") == body)
    }

    @Test("-v shows heads and connections, and no secret")
    func verbose() async throws {
        let result = try await sandbox.done(
            "get", "-v", "-H", "X-Api-Key: canary-one", "--user", "me:canary-two",
            server.url("/a.bin?token=canary-three"))
        for text in [
            "> GET /a.bin?token=*** HTTP/1.1", "> X-Api-Key: ***", "> Authorization: ***", "< HTTP/1.1 200",
            "* Connected",
        ] {
            #expect(result.errors.contains(text), "\(result.errors)")
        }
        #expect(!result.errors.contains("canary"))
        let usual = try await sandbox.done("get", "-o", "b", server.url("/a.bin"))
        #expect(!usual.errors.contains("> GET"))
    }

    @Test(
        "-o refuses devices, FIFOs and links to them at once, also with --overwrite",
        arguments: ["/dev/null", "fifo", "link", "open"])
    func special(name: String) async throws {
        #expect(mkfifo("\(sandbox.files)/fifo", 0o600) == 0)
        try FileManager.default.createSymbolicLink(atPath: "\(sandbox.files)/link", withDestinationPath: "/dev/null")
        // As /dev/stdout, whatever standard output is.
        try FileManager.default.createSymbolicLink(
            atPath: "\(sandbox.files)/open", withDestinationPath: "/proc/self/fd/1")
        for words in [[], ["--overwrite"]] {
            let result = try await sandbox.fk(["get", "-o", name] + words + [server.url("/a.bin")])
            #expect(result.status == 2 && result.errors.contains("fk cat URL"), "\(result.errors)")
        }
        #expect(server.requests.isEmpty)
    }

    @Test("A client's key: an encrypted one, none, and one without its certificate are refused at once")
    func keys() async throws {
        try sandbox.put("-----BEGIN CERTIFICATE-----\nx\n", "cert.pem")
        try sandbox.put("-----BEGIN ENCRYPTED PRIVATE KEY-----\nx\n", "locked.pem")
        for (words, reason) in [
            (["--cert", "cert.pem"], "no private key"), (["--cert", "cert.pem", "--key", "locked.pem"], "encrypted"),
            (["--key", "cert.pem"], "--cert FILE"), (["--cert", "nothing.pem"], "nothing.pem"),
        ] {
            let result = try await sandbox.fk(["get"] + words + [server.url("/a.bin")])
            #expect(result.status == 2 && result.errors.contains(reason), "\(result.errors)")
        }
        #expect(server.requests.isEmpty)
    }
}
