import FKMiddleware
import Foundation

/// Asks for confirmation before something is deleted.
struct Confirmation {
    private let context: CommandContext

    init(_ context: CommandContext) { self.context = context }

    static var isPossible: Bool { isatty(0) == 1 }

    /// - Throws: `CommandFailure` if standard input is not a terminal.
    func ask(_ question: String) throws -> Bool {
        guard Self.isPossible else {
            throw CommandFailure(
                "\(question) Refusing to delete without confirmation; pass --yes.", status: ExitStatus.usage)
        }
        context.errors.write("\(question.visible) [y/N] ")
        let answer = readLine()?.lowercased() ?? ""
        return answer == "y" || answer == "yes"
    }
}
