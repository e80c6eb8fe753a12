import FKCore
import Foundation

struct BarrelSyncOptions: Sendable {
    /// The most files that are deleted.
    enum Limit: Sendable, Hashable, CustomStringConvertible {
        case files(Int)
        case percent(Int)

        /// `N` or `P%`; nil for any other text.
        init?(_ text: String) {
            let isPercent = text.hasSuffix("%")
            guard let number = Int(isPercent ? String(text.dropLast()) : text), number >= 0, !isPercent || number <= 100
            else { return nil }
            self = isPercent ? .percent(number) : .files(number)
        }

        var description: String {
            switch self {
            case .files(let count): "\(count)"
            case .percent(let percent): "\(percent)%"
            }
        }

        /// True if this number of members, out of all of them, may be deleted.
        func allows(_ count: Int, of members: Int) -> Bool {
            switch self {
            case .files(let most): count <= most
            case .percent(let most): count * 100 <= members * most
            }
        }
    }

    var run: RunOptions
    let isDryRun: Bool
    let deletes: Bool
    let limit: Limit
    let isConfirmed: Bool

    static let specs: [OptionSpec] =
        [
            .flag("dry-run", nil, "print new, changed, same and gone files with their sizes, and change nothing"),
            .flag(
                "delete", nil,
                "delete files that are gone from the source, if fk wrote them and nobody has changed them"),
            .value(
                "max-delete", nil, "N|P%",
                "delete nothing if more than N files, or P percent of them, are gone (default: 50%)"),
            .flag("yes", "y", "do not ask for confirmation"),
        ] + RunOption.specs.filter { $0.long != "detach" }

    init(_ arguments: ParsedArguments, _ context: CommandContext) throws {
        run = try RunOptions(arguments, context)
        isDryRun = arguments.has("dry-run")
        deletes = arguments.has("delete")
        isConfirmed = arguments.has("yes")
        guard let limit = Limit(arguments["max-delete"] ?? "50%") else {
            throw arguments.error("--max-delete: give a number of files, or a percentage such as 50%.")
        }
        self.limit = limit
        for option in ["max-delete", "yes"] where arguments.has(option) && !deletes {
            throw arguments.error("--\(option) is about deletion: give --delete.")
        }
    }
}
