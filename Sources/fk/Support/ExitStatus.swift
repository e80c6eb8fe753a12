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
}
