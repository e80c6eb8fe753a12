import FKRPC
import TestSupport
import Testing

/// `fk rpc` as a process of its own, on a free port.
final class RPCProcess: Sendable {
    let folder: TemporaryFolder
    let child: ChildProcess
    let port: Int

    var downloads: String { folder.file("downloads").path }

    static let build = URL(fileURLWithPath: CommandLine.arguments[0]).resolvingSymlinksInPath()
        .deletingLastPathComponent()
    static let fk = build.appendingPathComponent("fk").path

    /// - Parameters:
    ///   - words: further options.
    ///   - descriptors: the limit of open files; nil for that of this process.
    init(
        _ words: [String] = ["--no-secret"], folder: TemporaryFolder? = nil, descriptors: Int? = nil
    ) async throws {
        let folder = try folder ?? TemporaryFolder()
        self.folder = folder
        let name = "output-\(UUID().uuidString)"
        let output = folder.file(name).path
        try FileManager.default.createDirectory(at: folder.file("downloads"), withIntermediateDirectories: true)
        child = try ChildProcess(
            (descriptors.map { ["/bin/sh", "-c", "ulimit -n \($0); exec \"$0\" \"$@\""] } ?? []) + [
                Self.fk, "rpc", "--work-path", folder.file("work").path, "-d", folder.file("downloads").path,
                "--listen", "127.0.0.1:0",
            ] + words,
            folder: folder.path, output: .file(output))
        let found = try await eventually { () -> Int? in
            let text = String(decoding: (try? folder.read(name)) ?? [], as: UTF8.self)
            guard let start = text.range(of: "127.0.0.1:"), text.contains("jsonrpc") else { return nil }
            return Int(text[start.upperBound...].prefix { $0.isNumber })
        }
        port = try #require(found, "\(String(decoding: (try? folder.read(name)) ?? [], as: UTF8.self))")
    }

    /// Runs `fk rpc` to its end.
    static func run(_ words: [String]) async throws -> (status: Int32, output: String) {
        let folder = try TemporaryFolder()
        let child = try ChildProcess(
            [fk, "rpc", "--work-path", folder.file("work").path] + words, folder: folder.path,
            output: .file(folder.file("output").path))
        let status = try await offPool { child.end() }
        return (status, String(decoding: try folder.read("output"), as: UTF8.self))
    }

    /// Ends it and waits for its end.
    @discardableResult
    func end(_ signal: Int32 = SIGTERM) async throws -> Int32 {
        kill(child.pid, signal)
        return try await offPool { [child] in child.end() }
    }

    /// The whole answer to a request line with fields and a body.
    func exchange(
        _ line: String, _ fields: [String] = [], body: String? = nil, host: String = "localhost"
    ) async throws -> String {
        try await offPool { [port] in
            let client = try RawClient(port: port)
            var head = ["\(line) HTTP/1.1", "Host: \(host)", "Connection: close"] + fields
            if let body { head.append("Content-Length: \(body.utf8.count)") }
            client.send(head.joined(separator: "\r\n") + "\r\n\r\n" + (body ?? ""))
            return try client.receiveAll()
        }
    }

    /// The result or error of a call.
    func call(_ method: String, _ params: JSON...) async throws -> JSON {
        let body = JSON.members(["id": 1, "method": .string(method), "params": .array(params)])
        let answer = try await exchange("POST /jsonrpc", body: String(decoding: body.bytes, as: UTF8.self))
        let end = try #require(answer.range(of: "\r\n\r\n"), "\(answer)")
        let json = try #require(JSON(parsing: Array(answer[end.upperBound...].utf8)), "\(answer)")
        return try #require(json["result"] ?? json["error"])
    }
}
