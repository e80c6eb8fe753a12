import FKCore
import FKMiddleware
import Foundation

/// `fk set`: changes the attributes of a task.
struct SetCommand: Command {
    let reference: TaskReference
    let attributes: [String: String?]
    let global: GlobalOptions
    let context: CommandContext

    static let spec = CommandSpec(
        path: ["set"], summary: "change the attributes of a task",
        discussion: [
            "Attributes are pairs of name and value that are stored with a task. fk info shows them; fk list --attribute "
                + "and fk list --text find tasks by them."
        ],
        operands: [
            OperandSpec("url|id", "the task: its URL, or the beginning of its id", hint: .tasks),
            OperandSpec("NAME=VALUE", "pairs to set; NAME= removes one", 1, nil),
        ],
        examples: [.init("fk set https://example.com/a.iso owner=me", "store one attribute")],
        make: { arguments, context in
            try SetCommand(
                reference: TaskReference.parse(arguments.operands[0], arguments),
                attributes: Attribute.pairs(arguments.operands.dropFirst(), "", arguments),
                global: GlobalOptions(arguments, context), context: context)
        })

    func run() async throws -> Int32 {
        let client = EngineClient.reportingSilence(Configure(workPath: URL(fileURLWithPath: global.workPath)), context)
        let selector = try reference.selector(in: global)
        let (reply, problems) = try await client.perform(.setAttributes(selector, attributes))
        let answers = Answers(global, context)
        answers.warn(problems)
        guard case .count(let count) = reply else { return answers.status(of: reply) }
        return answers.status(of: .done(note: "attributes of \(Formatting.count(count, "task")) changed"))
    }
}
