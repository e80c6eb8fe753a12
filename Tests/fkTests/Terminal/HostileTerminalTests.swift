import TestSupport
import Testing

@testable import fk

/// What a server says is shown and never acts.
@Suite("What a server would like to do to a terminal")
struct HostileTerminalTests {
    /// Sets the window's title, clears the screen, turns the text red, asks for an answer; as C1 bytes too.
    private static let attack = "\u{1b}]0;owned\u{7}\u{1b}[2J\u{1b}[31m\u{1b}[6n\u{9b}2J\u{202e}"

    /// Where a server may put it.
    enum Place: String, CaseIterable, Sendable {
        case name, nameInURL, reason, header, errorBody, location, contentType, protocolLine
    }

    private func answer(_ place: Place) -> FaultResponse {
        let attack = Self.attack
        switch place {
        case .name: return .ok([1], headers: ["Content-Disposition": "attachment; filename=\"a\(attack)b\""])
        case .nameInURL: return .ok([1])
        case .reason: return .raw("HTTP/1.1 404 \(attack)\r\nContent-Length: 0\r\n\r\n")
        case .header: return .raw("HTTP/1.1 404 No\r\nX-\(attack): \(attack)\r\nContent-Length: 0\r\n\r\n")
        case .errorBody: return .status(404, body: Array("<title>\(attack)</title>\(attack)\r\n\(attack)".utf8))
        case .location: return .redirect(to: "ftp://\(attack)/\(attack)")
        case .contentType: return .ok([1], headers: ["Content-Type": "text/\(attack)", "Content-Encoding": attack])
        case .protocolLine: return .raw("\(attack)\r\n\r\n")
        }
    }

    private func url(_ server: FaultServer, _ place: Place) -> String {
        place == .nameInURL ? server.url("/a%1b%5d0%3bowned%07%1b%5b2J%c2%9b2Jb") : server.url("/\(place.rawValue)")
    }

    private func expectHarmless(_ text: String, _ what: String) {
        let acting = text.unicodeScalars.filter {
            ($0.value < 0x20 && $0 != "\n") || (0x7f...0x9f).contains($0.value) || $0 == "\u{202e}"
        }
        #expect(acting.isEmpty, "\(what): \(text.debugDescription)")
    }

    @Test("escape sequences of a server are shown escaped, in text and JSON", arguments: Place.allCases)
    func piped(_ place: Place) async throws {
        let sandbox = try Sandbox()
        let server = try FaultServer()
        server.routeOthers { [answer = answer(place)] _ in answer }
        let url = url(server, place)
        for words in [
            ["get", url, "--retry", "0"], ["get", url, "--retry", "0", "--json"], ["list"], ["list", "--json"],
            ["info", url], ["info", url, "--json"], ["why", url], ["why", url, "--json"], ["info", url, "--raw"],
        ] {
            let result = try await sandbox.fk(words)
            expectHarmless(result.output, "\(words)")
            expectHarmless(result.errors, "\(words)")
        }
    }

    @Test("nor do they reach a real terminal", .needsPseudoTerminal, arguments: Place.allCases)
    func terminal(_ place: Place) async throws {
        let sandbox = try Sandbox()
        let server = try FaultServer()
        server.routeOthers { [answer = answer(place)] _ in answer }
        let terminal = try PseudoTerminal(columns: 200)
        let words = ["get", url(server, place), "--retry", "0", "-d", sandbox.files]
        let environment = ["FK_WORK_PATH": sandbox.workPath]
        let output = try await offPool { try terminal.run(FKProgram.path, words, environment: environment) }
        for sequence in ["\u{1b}]", "\u{7}", "\u{1b}[2J", "\u{1b}[6n", "\u{9b}", "\u{202e}"] {
            #expect(!output.raw.contains(sequence), "\(output.raw.debugDescription)")
        }
    }
}
