import FKCore
import FKEngine
import FKMiddleware

extension Downloader {
    /// Creates a downloader for tests: bytes come from a script, and time passes by hand.
    ///
    /// - Throws: same as `Downloader.init(_:role:transport:)` with the role `.owner`.
    public convenience init(
        _ configure: Configure, scripted transport: ScriptedTransport, clock: ManualClock
    ) throws(DownloadError) {
        self.init(
            engine: try typedNow {
                try Engine(configure: configure, scope: .all, transport: transport, clock: clock)
            }, transport: transport)
    }
}
