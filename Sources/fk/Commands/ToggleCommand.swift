import FKCore
import FKMiddleware
import Foundation

struct ToggleCommand: Command {
    let references: [TaskReference]
    let context: CommandContext

    func run() async throws -> Int32 {
        let selectors = try references.flatMap { try $0.selectors(in: global) }
        var answers = VerbAnswers(context, forAll: false)
        for selector in selectors where answers.failure == nil {
            answers.absorb(try await Answers(context).perform(EngineMessage(.toggle(selector))), [])
        }
        let status = answers.end()
        context.warnOfShards(answers.first)
        return status
    }
}
