/// The failure of a command without a `DownloadError`.
struct CommandFailure: Error, Hashable {
    var message: String
    /// More lines behind the message.
    var lines: [String]
    var status: Int32

    init(_ message: String, lines: [String] = [], status: Int32) {
        self.message = message
        self.lines = lines
        self.status = status
    }
}
