/// The command line was not understood. Ends the program with status 2, before anything was done.
struct UsageError: Error, Hashable, CustomStringConvertible {
    /// What is wrong and what is allowed, for a person. Never holds a header's or a password's value.
    var message: String
    /// The command whose help tells more; empty for the overview.
    var command: [String]

    init(_ message: String, command: [String] = []) {
        self.message = message
        self.command = command
    }

    var description: String { message }

    /// The line under the message.
    var hint: String { "Try '\((["fk", "help"] + command).joined(separator: " "))'." }
}
