import FKCore
import FKMiddleware
import FKRPC
import Foundation

signal(SIGPIPE, SIG_IGN)
signal(SIGXFSZ, SIG_IGN)
let status = await RPCProgram.run(Array(CommandLine.arguments.dropFirst()))
// `_exit` and not `exit`, which finalises libraries while threads are still ending.
fflush(nil)
_exit(status)
