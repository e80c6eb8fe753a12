import FKCore
import FKRPC
import Foundation

/// What `fk rpc` was asked for. All paths are absolute.
package struct WebSettings: Sendable {
    package var workPath: String
    /// The base folders of relative paths, by their names.
    package var bases: [String: URL] = [:]
    /// The folders for files; the first one is that of downloads without a folder. Never empty.
    package var folders: [String]
    /// The address, `ListenOptions.standard` unless one was given.
    package var listen: String?
    package var secretFile: String?
    package var hasNoSecret = false
    package var origins: [String] = []
    package var certificate: String?
    package var key: String?
    package var isPlain = false
    package var isJSON = false
    package var isQuiet = false
    package var orders: RunOrders

    package init(workPath: String, folders: [String], orders: RunOrders) {
        self.workPath = workPath
        self.folders = folders
        self.orders = orders
    }

    /// - Throws: `ListenOptions.Fault`.
    func listenOptions() throws -> ListenOptions {
        try ListenOptions(
            listen: listen ?? ListenOptions.standard, secretFile: secretFile, hasNoSecret: hasNoSecret,
            origins: origins, certificate: certificate, key: key, isPlain: isPlain)
    }

    var configure: Configure {
        var configure = Configure(workPath: URL(fileURLWithPath: workPath, isDirectory: true))
        configure.bases.merge(bases) { $1 }
        configure.runsMiddlewarePrograms = true
        return orders.settingsForAll(over: configure)
    }
}
