import FKCore
import FKMiddleware
import Foundation

/// `fk set`: changes the attributes and the place in the queue of tasks.
struct SetCommand: Command {
    /// A place in the queue.
    enum Place: Sendable, Hashable {
        case first
        case last
        /// A priority: higher ones start earlier.
        case priority(Int)
    }

    let reference: TaskReference
    let attributes: [String: String?]
    let place: Place?
    let context: CommandContext

    static let spec = CommandSpec(
        path: ["set"], summary: "change attributes of a task, or its place in the queue",
        discussion: [
            "Attributes are pairs of name and value that are stored with a task. fk info shows them; fk list --attribute "
                + "and fk list --text find tasks by them."
        ],
        operands: [TaskReference.operand, OperandSpec("NAME=VALUE", "pairs to set; NAME= removes one", 0, nil)],
        options: [
            .value(
                "priority", nil, "first|last|N", hint: .choices(["first", "last"]),
                "start before or after all others that wait, or by a number: higher starts earlier (default: 0)")
        ],
        examples: [
            .init("fk set https://example.com/a.iso owner=me", "store one attribute"),
            .init("fk set a.iso --priority first", "the next one to start"),
        ],
        make: { arguments, context in
            guard arguments.operands.count > 1 || arguments.has("priority") else {
                throw arguments.error("Nothing to set was given: name NAME=VALUE or --priority.")
            }
            return try SetCommand(
                reference: TaskReference(arguments.operands[0]),
                attributes: Attribute.pairs(arguments.operands.dropFirst(), "", arguments), place: place(arguments),
                context: context)
        })

    private static func place(_ arguments: ParsedArguments) throws -> Place? {
        switch arguments["priority"] {
        case nil: return nil
        case "first": return .first
        case "last": return .last
        case let text?:
            guard let number = Int(text), abs(number) <= 1 << 40 else {
                throw arguments.error(
                    "--priority: '\(text.visible)' is not allowed here. Give first, last or a number.")
            }
            return .priority(number)
        }
    }

    func run() async throws -> Int32 {
        let answers = Answers(context)
        var requests: [EngineMessage] = []
        if !attributes.isEmpty {
            requests = try reference.selectors(in: global).map { EngineMessage(.setAttributes($0, attributes)) }
        }
        if let place { requests.append(EngineMessage(.change(try changes(to: place)))) }
        var status = ExitStatus.done
        for request in requests {
            var reply = try await answers.perform(request)
            if case .count(let count) = reply {
                reply = .done(note: "attributes of \(count.plural("task")) changed")
            }
            status = max(status, answers.status(of: reply))
        }
        if let ids = try? reference.records(global.openReader()).map(\.id) { context.warnOfShards(ids) }
        return status
    }

    private func changes(to place: Place) throws -> [TaskChange] {
        let reader = try global.openReader()
        let records = try reference.isGlob ? reference.records(reader) : [reference.only(reader)]
        let own = Set(records.map(\.id))
        let priority: Int
        if case .priority(let number) = place {
            priority = number
        } else {
            let others = try reader.records { $0.state == .idle && !own.contains($0.id) }.map(\.task.priority)
            priority = place == .first ? (others.max() ?? -1) + 1 : (others.min() ?? 1) - 1
        }
        return records.map { record in
            var change = TaskChange(record.id)
            change.priority = priority
            return change
        }
    }
}
