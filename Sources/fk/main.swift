import FKCore
import FKMiddleware
import Foundation

ProcessWords.holdStandardStreams()
let words: [String]
do {
    words = try ProcessWords.read()
} catch {
    OutputStream.standardError.writeLine("fk: \(error)")
    exit(ExitStatus.usage)
}

// Answered first, because scripts ask for it at every start.
if words == ["--version"] || words == ["--version", "--json"] || words == ["--json", "--version"] {
    SignalTrap.ignoreWriteSignals()
    OutputStream.standardOutput.write(VersionCommand.text(json: words.count == 2))
    exit(Dispatcher.status(ExitStatus.done, .standardOutput, .standardError))
}

DescriptorLimit.raise()
if let shortage = DescriptorLimit.shortage ?? MemoryLimit.shortage {
    OutputStream.standardError.writeLine("fk: \(shortage)")
    exit(ExitStatus.taskFailed)
}
// Before everything else, because it takes place beside it on a thread of its own.
if words.first == "get" { TransportLibrary.prepare() }
Allocator.keepFreedMemory()
SignalTrap.ignoreWriteSignals()
let status = await Dispatcher(context: .process).run(words)
TerminalGuard.leave()
// `_exit` and not `exit`, which finalises libraries while the transport's thread is still ending: both free the same
// memory, and successful runs ended with SIGABRT. Nothing is left to write, because no output is buffered.
_exit(status)
