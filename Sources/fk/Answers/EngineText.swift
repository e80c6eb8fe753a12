import FKCore

/// Messages about an engine process that shows no sign of life.
enum EngineText {
    static func text(_ news: EngineWatch.News, pid: Int32) -> String {
        switch news {
        case .silent:
            "warning: process \(pid), which runs the downloads, has shown no sign of life: "
                + "it is stopped or hung. Continue it with: kill -CONT \(pid), or end it with: "
                + "kill -KILL \(pid) (every byte is kept, and a command that waits here continues)."
        case .back: "process \(pid) runs the downloads again."
        }
    }

    /// Why a task of such a process does not move.
    static let reason = "the process that runs the downloads shows no sign of life: it is stopped or hung"
}

extension StoreReader {
    /// Says on standard error which engines are stopped or hung. Returns the reader, which gives their tasks no speed.
    func reportingSilence(_ context: CommandContext) -> StoreReader {
        var reader = self
        for holder in reader.findSilentEngines() {
            context.errors.writeLine("fk: \(EngineText.text(.silent, pid: holder.pid))")
        }
        return reader
    }
}

extension EngineClient {
    /// A client that reports on standard error if the engine's process is silent.
    static func reportingSilence(_ configure: Configure, _ context: CommandContext) -> EngineClient {
        var client = EngineClient(configure: configure)
        client.onNews = { news, holder in
            context.errors.writeLine("fk: \(EngineText.text(news, pid: holder?.pid ?? 0))")
        }
        return client
    }
}
