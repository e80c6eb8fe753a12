/// The exit statuses of `fk`. Scripts depend on them. After a signal it is `SignalTrap.exitStatus`.
enum ExitStatus {
    /// Everything asked for is done.
    static let done: Int32 = 0
    /// At least one task failed.
    static let taskFailed: Int32 = 1
    /// The command line was not understood; nothing was done.
    static let usage: Int32 = 2
    /// The work path cannot be used.
    static let workPath: Int32 = 3
    /// Nothing by that name.
    static let notFound: Int32 = 4
}
