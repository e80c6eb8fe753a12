import FKEngine
import FKMiddleware
import Foundation

/// What a task is made of: the text of a URL, a `URL`, or a `Builder`, which says more about it.
///
/// ```swift
/// try await downloader.add("https://example.com/a.zip", to: folder)
/// ```
public protocol Downloadable: Sendable {
    /// The description of the task.
    ///
    /// - Throws: `.invalidURL` or `.unsupportedScheme`, with the reason.
    var builder: Builder { get throws(DownloadError) }
}

extension String: Downloadable {
    /// The task of this URL. Characters that no URL may have are percent-encoded.
    public var builder: Builder { get throws(DownloadError) { try Builder(self) } }
}

extension URL: Downloadable {
    /// The task of this URL.
    public var builder: Builder { get throws(DownloadError) { try Builder(self) } }
}

extension Builder: Downloadable {
    /// The builder itself.
    public var builder: Builder { self }

    /// The description with the usual options of a call; what is nil stays.
    init(
        adding file: some Downloadable, to folder: URL? = nil, named name: String? = nil, checksum: Checksum? = nil
    ) throws(DownloadError) {
        self = try file.builder
        if let folder {
            guard folder.isFileURL else {
                throw DownloadError(
                    .invalidArgument, "The folder is not a file URL: use URL(fileURLWithPath:).",
                    url: folder.absoluteString.masked)
            }
            self.folder = folder
        }
        if let name { try setFileName(name) }
        if let checksum { options.checksum = checksum }
    }
}
