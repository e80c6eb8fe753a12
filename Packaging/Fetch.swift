import FKCore
import FKMiddleware
import Foundation

// The program of Packaging/test-package: Fetch URL FOLDER WORKPATH

let downloader = try Downloader(Configure(workPath: URL(fileURLWithPath: CommandLine.arguments[3])))
downloader.activateQueue()
var builder = try Builder(CommandLine.arguments[1])
builder.folder = URL(fileURLWithPath: CommandLine.arguments[2])
let id = try await builder.prepare(in: downloader)
let info = await downloader.messager.finished(id)
print(info?.state ?? .unknown, info?.fileURL?.path ?? "")
await downloader.close()
