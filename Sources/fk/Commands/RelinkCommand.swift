import FKCore
import FKManifests
import FKMiddleware
import Foundation

/// `fk relink`: gives a task another address.
struct RelinkCommand: Command {
    let reference: TaskReference
    let address: String
    let context: CommandContext

    static let spec = CommandSpec(
        path: ["relink"], summary: "give a task another address, such as a renewed link",
        discussion: [
            "For links that have expired. The task keeps its URL, its id and its folder; requests use the new address. The "
                + "bytes stay if they belong to the same file: the length has to be equal, and the digest, the strong ETag "
                + "or the bytes before the seam. Otherwise the file is fetched from its beginning, and 'fk why' says so.",
            "Header fields, cookies and logins that were given for the old address are not sent to another origin. Write a login "
                + "into the new URL if it needs one.",
            "A running task continues at once with the new address, and a failed one is queued. The task's own URL as the "
                + "new address removes the one that was given before.",
        ],
        operands: [
            TaskReference.operand,
            OperandSpec("new-url", "the address to fetch the file from"),
        ],
        examples: [
            .init("fk relink 4cc6b731be18 'https://example.com/a.iso?sig=new'", "the link of this task was renewed")
        ],
        make: { arguments, context in
            let address = arguments.operands[1]
            if let reason = address.urlFault {
                throw arguments.error(
                    "Not a URL to download: \(reason). The new address is an http or https URL, and no name of a source."
                )
            }
            return RelinkCommand(reference: TaskReference(arguments.operands[0]), address: address, context: context)
        })

    func run() async throws -> Int32 {
        // Tasks with several folders may have different files.
        let id = try reference.only(try global.openReader()).id
        let status = try await Answers(context).answer(EngineMessage(.relink(id, to: address)))
        context.warnOfShards([id])
        return status
    }
}
