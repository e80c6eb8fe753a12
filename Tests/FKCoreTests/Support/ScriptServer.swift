import Foundation
import TestSupport
import Testing

/// A server written in Python, in a process of its own. It gets the paths of a certificate and its key, and more arguments, and
/// prints its port in the first line.
final class ScriptServer: Sendable {
    let certificates: TestCertificates
    let port: UInt16
    private let child: ChildProcess
    private let folder: TemporaryFolder

    init(_ script: String, _ arguments: [String] = []) throws {
        certificates = try TestCertificates()
        folder = try TemporaryFolder()
        try folder.write(Array(script.utf8), to: "server.py")
        let program = try #require(Program.find("python3"))
        var pipes: [Int32] = [0, 0]
        try #require(pipe(&pipes) == 0)
        defer { close(pipes[0]) }
        child = try ChildProcess(
            [program, folder.file("server.py").path, certificates.certificate(.good), certificates.key(.good)]
                + arguments,
            output: .descriptor(pipes[1]))
        close(pipes[1])
        var line: [UInt8] = []
        var byte: UInt8 = 0
        while read(pipes[0], &byte, 1) == 1, byte != UInt8(ascii: "\n") { line.append(byte) }
        port = try #require(UInt16(String(decoding: line, as: UTF8.self)))
    }

    deinit {
        kill(child.pid, SIGKILL)
        _ = child.end()
    }

    func url(_ path: String, scheme: String = "https") -> String { "\(scheme)://127.0.0.1:\(port)\(path)" }
}
