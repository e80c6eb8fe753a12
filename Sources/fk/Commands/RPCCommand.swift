import FKCore
import FKMiddleware
import Foundation

/// `fk rpc`: starts the program `fk-rpc`, which has the server. `fk` itself stays free of it and starts faster.
struct RPCCommand: Command {
    static let all: [CommandSpec] = [spec]

    static let spec = CommandSpec(
        path: ["rpc"], summary: "serve aria2's RPC and a page in the browser",
        discussion: [
            "Runs the downloads of the work path and lets programs that know aria2, such as AriaNg and aria2p, and a page in "
                + "the browser add and steer them. If another process runs the downloads, it steers that one. Ends with "
                + "Ctrl-C; everything is kept.",
            "The first start makes a secret, stores it in the work path and shows it. Clients and the page need it. An address "
                + "that other machines reach needs a secret and TLS, or --plain behind a proxy that encrypts.",
            "The program fk-rpc must be beside fk or in PATH.",
        ],
        options: options,
        examples: [
            .init("fk rpc -d ~/Downloads", "serve http://127.0.0.1:6800/ and store files in ~/Downloads"),
            .init("fk rpc --listen 0.0.0.0:6800 --cert cert.pem --key key.pem", "for the local network, encrypted"),
        ],
        make: { try RPCCommand(words: words($0, $1), context: $1) })

    private static let options: [OptionSpec] =
        [
            .value(
                "listen", nil, "ADDRESS", "address and port to listen on (default: 127.0.0.1:6800); port 0: a free one"),
            .value("secret-file", nil, "FILE", hint: .file, "take the secret from the first line of FILE"),
            .flag("no-secret", nil, "let every program of this machine in"),
            .repeated("allow-origin", nil, "ORIGIN", "let pages of this origin in, such as https://ariang.example"),
            .value("cert", nil, "FILE", hint: .file, "certificate (PEM) for TLS"),
            .value("key", nil, "FILE", hint: .file, "key of the certificate (PEM)"),
            .flag("plain", nil, "serve other machines without TLS"),
            .repeated(
                "directory", "d", "DIR", hint: .directory,
                "folder for the files (default: the present one); given again: a further one that clients may name"),
        ] + RunOptions.specs.filter { taken.contains($0.long) }

    /// The options of a run that apply here.
    private static let taken: Set<String> = [
        "jobs", "connections", "limit-rate", "min-free", "parts-folder", "durability", "transport",
    ]

    /// The command line of `fk-rpc`.
    let words: [String]
    let context: CommandContext

    private static func words(_ arguments: ParsedArguments, _ context: CommandContext) throws -> [String] {
        let global = context.global
        let run = try RunOptions(arguments, context)
        var words = ["--work-path", global.workPath]
        func add(_ name: String, _ value: String?) { if let value { words += ["--\(name)", value] } }
        func path(_ name: String) throws -> String? {
            try arguments[name].map { text in
                guard !text.isEmpty else { throw arguments.error("--\(name): the file's name is empty.") }
                return try Paths.absolute(text, from: context.workingDirectory)
            }
        }
        let folders = arguments.all("directory")
        for folder in folders.isEmpty ? ["."] : folders {
            guard !folder.isEmpty else { throw arguments.error("-d: the folder's name is empty.") }
            add("folder", try Paths.absolute(folder, from: context.workingDirectory))
        }
        add("listen", arguments["listen"])
        add("secret-file", try path("secret-file"))
        for origin in arguments.all("allow-origin") { add("allow-origin", origin) }
        add("cert", try path("cert"))
        add("key", try path("key"))
        for (name, folder) in global.configure.bases { add("base", "\(name)=\(folder.path)") }
        words += run.words
        for flag in ["no-secret", "plain", "json", "quiet"] where arguments.has(flag) { words.append("--\(flag)") }
        return words
    }

    func run() async throws -> Int32 {
        guard let program = try Self.program(context) else {
            throw CommandFailure(
                "The program fk-rpc is neither beside fk nor in PATH. 'make build' builds it (it needs libwebsockets), and the "
                    + "package of fk contains it.", status: ExitStatus.taskFailed)
        }
        // This process becomes fk-rpc, so that signals reach it.
        _ = CStrings.with([program] + words) { execv(program, $0) }
        throw CommandFailure(
            "\(program) cannot be started: \(String(cString: strerror(errno))).", status: ExitStatus.taskFailed)
    }

    /// The path of `fk-rpc`; nil if there is none.
    private static func program(_ context: CommandContext) throws -> String? {
        let beside = (Paths.split(try OwnProgram.path()).folder ?? "") + "/fk-rpc"
        let folders = (context.environment["PATH"] ?? "").split(separator: ":").map { "\($0)/fk-rpc" }
        return ([beside] + folders).first { access($0, X_OK) == 0 }
    }
}
