/// The command line is invalid. The program ends with status 2 before it has done anything.
struct UsageError: Error, Hashable, CustomStringConvertible {
    /// The problem and the allowed values. It never contains the value of a header or a password.
    var message: String
    /// More lines behind the message.
    var lines: [String] = []
    /// The command whose help explains more; empty for the overview.
    var command: [String]

    init(_ message: String, command: [String] = []) {
        self.message = message
        self.command = command
    }

    var description: String { message }

    /// The line below the message.
    var hint: String { "Try '\((["fk", "help"] + command).joined(separator: " "))'." }
}
