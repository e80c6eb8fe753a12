import FKCore
import FKMiddleware
import Foundation

/// `fk toggle`
struct ToggleCommand: Command {
    let references: [TaskReference]
    let global: GlobalOptions
    let context: CommandContext

    func run() async throws -> Int32 {
        let selectors = try references.flatMap { try $0.selectors(in: global) }
        let client = EngineClient.reportingSilence(global.configure, context)
        return try await client.verbs(selectors.map { EngineMessage(.toggle($0)) }, Answers(global, context))
    }
}

extension EngineClient {
    /// Performs requests whose replies are results of verbs, and shows the results together.
    ///
    /// - Parameter forAll: true shows only the tasks that changed.
    func verbs(_ requests: [EngineMessage], _ answers: Answers, forAll: Bool = false) async throws -> Int32 {
        var results: [VerbResult] = []
        for request in requests {
            let (reply, problems) = try await perform(request)
            answers.warn(problems)
            guard case .verbs(let list) = reply else { return answers.status(of: reply) }
            results += list
        }
        return answers.verbs(results, forAll: forAll)
    }
}
