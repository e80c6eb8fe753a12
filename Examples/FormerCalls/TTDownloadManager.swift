import FKCompatibility
import Foundation

/// TTDownloadManager: one call starts, pauses and resumes a file; a record tells name, type, size and share.
func ttDownloadManager(_ urls: [String], _ folder: URL) async throws {
    try await withDownloader(Configure(workPath: folder.appendingPathComponent(".work"))) { downloader in
        var builder = try Builder(urls[0])
        builder.folder = folder
        var button = try await downloader.messager.toggle(orAdd: builder, stateChanged: { print($0.rawValue) })
        // The second press pauses, the third one resumes. A complete file is reported as complete each time.
        button = try await downloader.messager.toggle(orAdd: builder, stateChanged: { print($0.rawValue) })
        button = try await downloader.messager.toggle(
            orAdd: builder, stateChanged: { print($0.rawValue) },
            progress: { received, expected, share in print(received, expected ?? -1, share ?? 0) },
            completion: { result in print((try? result.get().path) ?? "failed") })
        _ = await downloader.messager.finished(builder.id)
        var query = RecordQuery()
        query.sort = .lastUsed
        for record in try await downloader.messager.records(query).records {
            print(
                record.name, record.mimeType ?? "-", record.info.count.expected ?? -1, record.info.count.fraction ?? 0)
        }
        button.cancel()
        try await downloader.control.trash(.all)
    }
}
