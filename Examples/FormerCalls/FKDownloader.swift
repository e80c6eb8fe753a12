import FKCompatibility
import Foundation

/// FKDownloader: configure, activate, prepare, listen, suspend and resume, a barrel.
func fkDownloader(_ urls: [String], _ folder: URL) async throws {
    var configure = Configure(workPath: folder.appendingPathComponent(".work"))
    configure.maxAction = 4
    let downloader = try Downloader(configure)
    downloader.activateQueue()
    for url in urls {
        var builder = try Builder(url)
        builder.folder = folder
        try await builder.prepare(in: downloader)
        try await downloader.messager.addInfo(url) { info in
            print(info.state.rawValue, info.count.received, info.count.previousReceived, info.count.expected ?? -1)
        }.keep()
    }
    try await downloader.control.suspend(urls[0])
    try await downloader.control.resume(urls[0])
    try await downloader.messager.addBarrel("list", urls: urls)
    await downloader.waitUntilDrained()
    for url in try await downloader.messager.urls(inBarrel: "list") {
        print(await downloader.messager.state(url), await downloader.messager.filePath(url) ?? "-")
    }
    await downloader.close()
}
