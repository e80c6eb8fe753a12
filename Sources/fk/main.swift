import FKCore
import FKMiddleware
import Foundation

let words = Array(CommandLine.arguments.dropFirst())

// Asked for by scripts at every start: answered before anything else is touched.
if words == ["--version"] || words == ["--version", "--json"] || words == ["--json", "--version"] {
    OutputStream.standardOutput.write(VersionCommand.text(json: words.count == 2))
    exit(ExitStatus.done)
}

Allocator.keepFreedMemory()
SignalTrap.ignoreWriteSignals()
DescriptorLimit.raise()
guard !CommandContext.process.workingDirectory.isEmpty else {
    OutputStream.standardError.writeLine("fk: The current folder does not exist any more: go to another one.")
    exit(ExitStatus.taskFailed)
}
let status = await Dispatcher(context: .process).run(words)
// Not `exit`: that takes libraries down while the transport's thread is still ending, and what both of them free has ended
// good runs with SIGABRT. Nothing is left to write: no output waits in a buffer.
_exit(status)
