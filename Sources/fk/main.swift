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

// Asked for by scripts at every start: answered before anything else is touched.
if words == ["--version"] || words == ["--version", "--json"] || words == ["--json", "--version"] {
    SignalTrap.ignoreWriteSignals()
    OutputStream.standardOutput.write(VersionCommand.text(json: words.count == 2))
    exit(Dispatcher.status(ExitStatus.done, .standardOutput, .standardError))
}

Allocator.keepFreedMemory()
SignalTrap.ignoreWriteSignals()
DescriptorLimit.raise()
let status = await Dispatcher(context: .process).run(words)
// Not `exit`: that takes libraries down while the transport's thread is still ending, and what both of them free has ended
// good runs with SIGABRT. Nothing is left to write: no output waits in a buffer.
_exit(status)
