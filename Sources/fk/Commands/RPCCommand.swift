import FKCore
import FKMiddleware
import FKWeb
import Foundation

/// `fk rpc`: serves in this process. libwebsockets is loaded here and by no other command.
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
            "It needs the library libwebsockets, 4.1 to 4.5; without it, it names the package that has it.",
        ],
        options: options,
        examples: [
            .init("fk rpc -d ~/Downloads", "serve http://127.0.0.1:6800/ and store files in ~/Downloads"),
            .init("fk rpc --listen 0.0.0.0:6800 --cert cert.pem --key key.pem", "for the local network, encrypted"),
        ],
        make: { try RPCCommand(settings: settings($0, $1), context: $1) })

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
        ] + RunOption.all.filter(\.isOfServer).map(\.spec)

    let settings: WebSettings
    let context: CommandContext

    private static func settings(_ arguments: ParsedArguments, _ context: CommandContext) throws -> WebSettings {
        let global = context.global
        func path(_ name: String) throws -> String? {
            try arguments[name].map { text in
                guard !text.isEmpty else { throw arguments.error("--\(name): the file's name is empty.") }
                return try Paths.absolute(text, from: context.workingDirectory)
            }
        }
        let given = arguments.all("directory")
        let folders = try (given.isEmpty ? ["."] : given).map { folder in
            guard !folder.isEmpty else { throw arguments.error("-d: the folder's name is empty.") }
            return try Paths.absolute(folder, from: context.workingDirectory)
        }
        var settings = WebSettings(
            workPath: global.workPath, folders: folders, orders: try RunOptions(arguments, context).orders)
        settings.bases = global.configure.bases
        settings.listen = arguments["listen"]
        settings.secretFile = try path("secret-file")
        settings.hasNoSecret = arguments.has("no-secret")
        settings.origins = arguments.all("allow-origin")
        settings.certificate = try path("cert")
        settings.key = try path("key")
        settings.isPlain = arguments.has("plain")
        settings.isJSON = arguments.has("json")
        settings.isQuiet = arguments.has("quiet")
        return settings
    }

    func run() async throws -> Int32 { await RPCProgram.run(settings) }
}
