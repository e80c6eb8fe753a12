import FKMiddleware

/// The exit statuses of `fk`, which scripts depend on. After a signal, the status is `SignalTrap.exitStatus`.
enum ExitStatus {
    /// Everything succeeded.
    static let done: Int32 = 0
    /// At least one task failed.
    static let taskFailed: Int32 = 1
    /// The command line is invalid; nothing was done.
    static let usage: Int32 = 2
    /// The work path cannot be used.
    static let workPath: Int32 = 3
    /// A name matches nothing.
    static let notFound: Int32 = 4
    /// A run with `--shard` failed for a reason that may pass (EX_TEMPFAIL of sysexits.h), so that a scheduler can
    /// queue it again.
    static let tryAgain: Int32 = 75

    /// Each status and its meaning, for the help and the manual page.
    static let meanings = [
        ("0", "success"),
        (
            "1",
            "at least one file failed, the output could not be written, too few files may be open, or too little memory may be used"
        ),
        ("2", "invalid command line"), ("3", "the work path cannot be used"),
        ("4", "a name or id matches nothing"),
        ("75", "with --shard: at least one file failed for a reason that may pass; run the shard again"),
        ("141", "the reader of standard output has gone (SIGPIPE)"),
        ("130, 143, 129", "stopped by SIGINT (Ctrl-C), SIGTERM or SIGHUP; the downloads can be resumed"),
    ]

    /// The status of a command that ends with that error.
    static func of(_ error: DownloadError) -> Int32 {
        switch error.code {
        // A download without disk space only fails its task. An error that ends a command is about the work path.
        case .workPathUnusable, .workPathBusy, .laterVersion, .noSpace: workPath
        // A server's 404 is a failure of that server's listing.
        case .notFound where error.status == nil: notFound
        case .invalidArgument, .invalidURL, .unsupportedScheme: usage
        default: taskFailed
        }
    }
}
