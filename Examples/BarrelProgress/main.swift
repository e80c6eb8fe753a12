// A barrel: a named group of tasks with combined progress and counts by state. Finished members stay in it.
//
//     BarrelProgress [--limit-rate BYTES] URL...
//
// The files go into a temporary work path and are deleted at the end. Exit status: 0 when all files arrived.

import FKCore
import FKMiddleware
import Foundation

func padded(_ text: String, _ width: Int) -> String {
    text.padding(toLength: max(width, text.count), withPad: " ", startingAt: 0)
}

/// `received / expected` and how many members are in each state.
func describe(_ barrel: BarrelInfo) -> String {
    let states = barrel.states.sorted { $0.key.rawValue < $1.key.rawValue }
        .map { "\($0.value) \($0.key.rawValue)" }.joined(separator: ", ")
    let expected = barrel.count.expected.map(String.init) ?? "?"
    return "\(padded("\(barrel.count.received) of \(expected) bytes", 30)) \(states)"
}

/// Downloads the URLs as one barrel and returns true when every member is complete.
func download(_ urls: [String], rateLimit: Int64?) async throws -> Bool {
    let workPath = FileManager.default.temporaryDirectory.appendingPathComponent("fk-\(UUID().uuidString)")
    defer { try? FileManager.default.removeItem(at: workPath) }
    var configure = Configure(workPath: workPath)
    configure.maxAction = 4
    configure.progressInterval = .milliseconds(200)
    configure.rateLimit = rateLimit
    let downloader = try Downloader(configure)

    // All tasks at once, as members of one barrel. Each result is a task, or the error of a refused URL.
    let group = try await downloader.barrel("example")
    for result in try await group.add(urls) {
        if case .failure(let error) = result { print("failed    \(error)") }
    }

    // The sum never decreases, because finished members stay in it. The sequence ends when no member can continue.
    downloader.activateQueue()
    for await barrel in group.progress {
        print("barrel    \(describe(barrel))")
    }

    let barrel = try await group.info
    let members = await group.memberInfos
    // A task that failed before a server answered has no name yet.
    let names = members.map { $0.fileName ?? URL(string: $0.url)?.lastPathComponent ?? $0.url }
    let width = names.map(\.count).max() ?? 0
    print("\n\(padded("name", width))  \(padded("state", 8))  bytes")
    for (member, name) in zip(members, names) {
        let reason = member.error.map { "  \($0.message)" } ?? ""
        print("\(padded(name, width))  \(padded(member.state.rawValue, 8))  \(member.count.received)\(reason)")
    }
    print("\(padded("total", width))  \(barrel.states[.complete] ?? 0) of \(barrel.total)    \(barrel.count.received)")
    await downloader.close()
    return barrel.isComplete
}

var arguments = Array(CommandLine.arguments.dropFirst())
var rateLimit: Int64?
if arguments.first == "--limit-rate", arguments.count > 1 {
    rateLimit = Int64(arguments[1])
    arguments.removeFirst(2)
}
guard !arguments.isEmpty else {
    print("usage: BarrelProgress [--limit-rate BYTES] URL...")
    exit(2)
}
do {
    exit(try await download(arguments, rateLimit: rateLimit) ? 0 : 1)
} catch {
    print("failed    \(error)")
    exit(1)
}
