import FKCore
import FKMiddleware

/// `fk config show|set|path`
struct ConfigCommand: Command {
    enum Action: Sendable, Hashable {
        case show
        /// An empty value removes the setting.
        case set(Settings.Key, String)
        /// Without a folder, the base is removed.
        case setBase(String, folder: String?)
        case path
    }

    let action: Action
    let context: CommandContext

    func run() async throws -> Int32 {
        switch action {
        case .path:
            let path = Settings.path(workPath: global.workPath)
            if global.json {
                JSONOutput(context.output).document(.members(["path": .string(path)]))
            } else {
                context.output.writeLine(path)
            }
        case .show:
            show(try Settings.read(workPath: global.workPath))
        case .set(let key, let value):
            try change { $0[key] = value.isEmpty ? nil : value }
        case .setBase(let name, let folder): try change { $0.bases[name] = folder }
        }
        return ExitStatus.done
    }

    private func change(_ change: (inout Settings) -> Void) throws {
        var settings = try Settings.read(workPath: global.workPath)
        change(&settings)
        try settings.write(workPath: global.workPath)
        if global.json { show(settings) }
    }

    private func show(_ settings: Settings) {
        if global.json {
            let values = Settings.Key.allCases.map { JSON.Member($0.rawValue, JSON(masked($0, settings[$0]))) }
            let bases = settings.bases.map { JSON.Member(Settings.basePrefix + $0, .string($1)) }
            return JSONOutput(context.output).document(.object((values + bases).sorted { $0.name < $1.name }))
        }
        for key in Settings.Key.allCases {
            guard let value = masked(key, settings[key]) else { continue }
            context.output.writeLine("\(key.rawValue) = \(Escaping.visible(value))")
        }
        for (name, folder) in settings.bases.sorted(by: { $0.key < $1.key }) {
            context.output.writeLine("\(Settings.basePrefix)\(name) = \(Escaping.visible(folder))")
        }
    }

    /// Masks a proxy's URL, which may contain a password.
    private func masked(_ key: Settings.Key, _ value: String?) -> String? {
        key == .proxy ? value.map(URLMasking.mask) : value
    }
}
