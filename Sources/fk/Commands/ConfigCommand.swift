import FKCore
import FKMiddleware

/// `fk config show|set|path`
struct ConfigCommand: Command {
    enum Action: Sendable, Hashable {
        case show
        /// An empty value removes the setting.
        case set(Settings.Key, String)
        case path
    }

    let action: Action
    let global: GlobalOptions
    let context: CommandContext

    func run() async throws -> Int32 {
        switch action {
        case .path:
            let path = Settings.path(workPath: global.workPath)
            if global.json {
                JSONOutput(context.output).document(["path": path])
            } else {
                context.output.writeLine(path)
            }
        case .show:
            show(try Settings.read(workPath: global.workPath))
        case .set(let key, let value):
            var settings = try Settings.read(workPath: global.workPath)
            settings[key] = value.isEmpty ? nil : value
            try settings.write(workPath: global.workPath)
            if global.json { show(settings) }
        }
        return ExitStatus.done
    }

    private func show(_ settings: Settings) {
        if global.json {
            let values = Settings.Key.allCases.map { ($0.rawValue, OrNull(wrappedValue: masked($0, settings[$0]))) }
            return JSONOutput(context.output).document(Dictionary(uniqueKeysWithValues: values))
        }
        for key in Settings.Key.allCases {
            guard let value = masked(key, settings[key]) else { continue }
            context.output.writeLine("\(key.rawValue) = \(Escaping.visible(value))")
        }
    }

    /// Masks a proxy's URL, which may contain a password.
    private func masked(_ key: Settings.Key, _ value: String?) -> String? {
        key == .proxy ? value.map(URLMasking.mask) : value
    }
}
