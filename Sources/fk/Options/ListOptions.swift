import FKCore
import FKMiddleware
import Foundation

struct ListOptions: Sendable {
    var query: RecordQuery

    static let specs: [OptionSpec] = [
        .value(
            "state", nil, "STATE", hint: .choices(ShownState.words),
            "only tasks in this state: " + ShownState.words.joined(separator: ", ")),
        .value("barrel", "b", "NAME", hint: .barrels, "only members of this barrel"),
        .value("host", nil, "HOST", "only tasks of this host"),
        .value("text", nil, "TEXT", "only tasks with this text in the URL, name or an attribute, in either case"),
        .value("format", nil, "EXT", "only files with this extension"),
        .repeated("attribute", nil, "NAME=VALUE", "only tasks with this attribute"),
        .value("min-size", nil, "SIZE", "only files of at least this size, such as 20M"),
        .value("max-size", nil, "SIZE", "only files of at most this size"),
        .value(
            "since", nil, "TIME",
            "only tasks made since this time: 2026-11-20, a full time, or an age such as 3h or 2d"),
        .value("until", nil, "TIME", "only tasks made until this time"),
        .value(
            "sort", nil, "KEY", hint: .choices(RecordQuery.Sort.allCases.map(\.rawValue)),
            "order: " + RecordQuery.Sort.allCases.map(\.rawValue).joined(separator: ", ") + " (default: number)"),
        .flag("reverse", nil, "reverse the order"),
        .value("limit", nil, "N", "show at most N tasks"),
        .value("offset", nil, "N", "skip the first N tasks"),
    ]

    init(_ arguments: ParsedArguments, _ context: CommandContext) throws {
        query = RecordQuery()
        query.states = try arguments.state().map { Set($0.states) }
        query.barrel = try arguments.barrel()
        query.host = arguments["host"]
        query.text = arguments["text"]
        query.formats = arguments["format"].map { [$0.hasPrefix(".") ? String($0.dropFirst()) : $0] }
        query.attributes = try Attribute.pairs(arguments).compactMapValues(\.self)
        let least = try arguments.size("min-size", "--min-size")
        let most = try arguments.size("max-size", "--max-size")
        query.size = try Self.range(least, most, 0, .max, "--min-size", "--max-size", arguments)
        let now = Date()
        let since = try arguments.time("since", "--since", now: now)
        let until = try arguments.time("until", "--until", now: now)
        query.created = try Self.range(since, until, .distantPast, .distantFuture, "--since", "--until", arguments)
        query.sort = try arguments.choice("sort", "--sort", of: RecordQuery.Sort.self) ?? .number
        query.ascending = !arguments.has("reverse")
        query.limit = try arguments.integer("limit", "--limit", in: 1...Int(Int32.max))
        query.offset = try arguments.integer("offset", "--offset", in: 0...Int(Int32.max)) ?? 0
    }

    private static func range<Value: Comparable>(
        _ lower: Value?, _ upper: Value?, _ least: Value, _ most: Value, _ from: String, _ to: String,
        _ arguments: ParsedArguments
    ) throws -> ClosedRange<Value>? {
        guard lower != nil || upper != nil else { return nil }
        guard lower ?? least <= upper ?? most else {
            throw arguments.error("\(from) lies beyond \(to): nothing can be between them.")
        }
        return (lower ?? least)...(upper ?? most)
    }
}
