import FKCore
import FKMiddleware
import Foundation

/// The login of `--user`, sent as Basic authentication (RFC 7617). Like every secret header it is stored in the task's info file,
/// which only its owner can read, is never displayed, and does not follow a redirect to another host.
enum Login {
    /// The Authorization header of the login in a URL; nil for a URL without one.
    static func header(inURL url: String) -> HeaderField? {
        url.urlParts.credentials.map { .login($0.user, $0.password) }
    }

    static let spec = OptionSpec.value(
        "user", nil, "NAME[:PASSWORD]",
        "log in with this name; without a password it is asked for, and does not appear in the list of processes")

    /// The Authorization header; nil without `--user`.
    ///
    /// - Parameter ask: asks for the password of a name on the terminal; nil if there is no terminal.
    /// - Throws: `UsageError`. It never contains the password.
    static func header(
        _ arguments: ParsedArguments, ask: (String) throws -> String? = PasswordPrompt.ask
    ) throws -> HeaderField? {
        guard let text = arguments["user"] else { return nil }
        let colon = text.utf8.firstIndex(of: UInt8(ascii: ":"))
        let name = String(text[..<(colon ?? text.endIndex)])
        guard !name.isEmpty else { throw arguments.error("--user: the name is empty. Give NAME:PASSWORD, or NAME.") }
        if arguments.all("header").contains(where: { $0.lowercased().hasPrefix("authorization:") }) {
            throw arguments.error("--user and -H 'Authorization: …' exclude each other.")
        }
        let password: String
        if let colon {
            password = String(text[text.utf8.index(after: colon)...])
        } else {
            guard let answer = try ask(name) else {
                if PasswordPrompt.isPossible { throw arguments.error("--user: no password was given.") }
                throw arguments.error(
                    "--user: there is no terminal to ask for the password of \(name.visible). Give NAME:PASSWORD, "
                        + "or use --netrc.")
            }
            password = answer
        }
        guard !(name + password).unicodeScalars.contains(where: { $0.value < 0x20 || $0.value == 0x7f }) else {
            throw arguments.error("--user: name and password cannot have control characters.")
        }
        return .login(name, password)
    }
}

extension TaskOptions {
    /// True if the owner has said how to log in.
    var hasLogin: Bool { netrc == true || hasAuthorization }
}

/// Asks for a password on the terminal, which does not show it.
enum PasswordPrompt {
    /// True if there is a terminal.
    static var isPossible: Bool {
        let terminal = open("/dev/tty", O_RDWR | O_CLOEXEC)
        guard terminal >= 0 else { return false }
        close(terminal)
        return true
    }

    /// - Returns: nil if there is no terminal, or if the answer was ended by Ctrl-D.
    /// - Throws: `CommandFailure` after Ctrl-C.
    static func ask(name: String) throws -> String? {
        // Not standard input, which may be a list.
        let terminal = open("/dev/tty", O_RDWR | O_CLOEXEC)
        guard terminal >= 0 else { return nil }
        defer { close(terminal) }
        var before = termios()
        guard tcgetattr(terminal, &before) == 0 else { return nil }
        var silent = before
        // Ctrl-C ends the line instead of the process, which would leave the terminal without echo.
        silent.c_lflag &= ~tcflag_t(ECHO | ISIG)
        withUnsafeMutableBytes(of: &silent.c_cc) { $0[Int(VEOL)] = interrupt }
        tcsetattr(terminal, TCSAFLUSH, &silent)
        defer { tcsetattr(terminal, TCSAFLUSH, &before) }
        write(terminal, "Password for \(name.visible): ")
        let line = readLine(terminal)
        write(terminal, "\n")
        guard line?.utf8.last != interrupt else {
            throw CommandFailure("Stopped: nothing was done.", status: SignalTrap.exitStatus(SIGINT))
        }
        return line
    }

    /// Ctrl-C.
    private static let interrupt: UInt8 = 3

    private static func write(_ terminal: Int32, _ text: String) {
        _ = Array(text.utf8).withUnsafeBytes { Glue.writeAll(terminal, $0) }
    }

    private static func readLine(_ terminal: Int32) -> String? {
        var bytes: [UInt8] = []
        var byte: UInt8 = 0
        while withUnsafeMutableBytes(of: &byte, { Glue.read(terminal, $0) }) == 1 {
            if byte != UInt8(ascii: "\n") { bytes.append(byte) }
            if byte == UInt8(ascii: "\n") || byte == interrupt { return String(decoding: bytes, as: UTF8.self) }
            if bytes.count > 4_096 { return nil }
        }
        return nil
    }
}
