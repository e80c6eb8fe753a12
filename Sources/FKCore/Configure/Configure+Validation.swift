import FKMiddleware
import Foundation

extension WorkPath {
    /// The work path of a downloader with its bases.
    package init(_ configure: Configure) { self.init(configure.workPath, bases: configure.bases) }
}

extension Configure {
    /// Checks every setting. `Downloader.init` and `Downloader.update` call it.
    ///
    /// - Throws: `.invalidArgument` with the first setting outside its range, its value and the range. A work path that is
    ///   no file URL is such a setting.
    package func validate() throws(DownloadError) {
        for (name, url) in [("workPath", workPath), ("partsFolder", partsFolder ?? workPath)] where !url.isFileURL {
            throw DownloadError(.invalidArgument, "\(name) is \(url.absoluteString.masked), and must be a file URL.")
        }
        for (name, folder) in bases.sorted(by: { $0.key < $1.key }) {
            guard let fault = Places.fault(name, folder.isFileURL ? folder.path : "") else { continue }
            throw DownloadError(.invalidArgument, "A base is refused: \(fault).")
        }
        if let fault = hosts.lazy.compactMap(\.fault).first {
            throw DownloadError(.invalidArgument, "A host's policy is refused: \(fault).")
        }
        let disk: String? =
            OptionRange.fault("minFree", minFree, in: 0...) ?? OptionRange.fault("diskBudget", diskBudget, in: 0...)
        try OptionRange.check(
            disk ?? OptionRange.fault("rateLimit", rateLimit, in: 0...) ?? OptionRange.fault("connections", connections)
                ?? OptionRange.fault("maxConnectionsPerHost", maxConnectionsPerHost, in: 1...256)
                ?? OptionRange.fault("progressInterval", seconds: progressInterval.inSeconds, in: 0.2...2)
                ?? OptionRange.fault("background.pieceSize", background?.pieceSize, in: 64 << 10...1 << 40)
                ?? retry.fault ?? transport.fault ?? transportKind.fault(networks) ?? background?.fault)
    }
}
