import FKCore
import FKMiddleware

/// `fk config show|get|set|unset|path`
struct ConfigCommand: Command {
    enum Action: Sendable {
        case show
        case get(SavedOption)
        case getBase(String)
        /// An empty value removes the setting.
        case set(SavedOption, String)
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
        case .get(let option):
            let value = try Settings.read(workPath: global.workPath)[option.name].map(option.shown)
            return answer(value, usual: option.usual)
        case .getBase(let name):
            return answer(try Settings.read(workPath: global.workPath).bases[name], usual: nil)
        case .show:
            let settings = try Settings.read(workPath: global.workPath)
            settings.warn(context, workPath: global.workPath)
            show(settings)
        case .set(let option, let value):
            try change { $0[option.name] = value.isEmpty ? nil : value }
        case .setBase(let name, let folder): try change { $0.bases[name] = folder }
        }
        return ExitStatus.done
    }

    /// Prints a value, or the default where none is set.
    private func answer(_ value: String?, usual: String?) -> Int32 {
        if global.json {
            JSONOutput(context.output).document(.members(["default": JSON(usual), "value": JSON(value)]))
        } else if let text = value ?? usual, !text.isEmpty {
            context.output.writeLine(text.visible)
        }
        return ExitStatus.done
    }

    private func change(_ change: (inout Settings) -> Void) throws {
        let settings = try Settings.change(workPath: global.workPath, change)
        if global.json { show(settings) }
    }

    private func show(_ settings: Settings) {
        if global.json {
            let values = SavedOption.all.map { JSON.Member($0.name, JSON(settings[$0.name].map($0.shown))) }
            let bases = settings.bases.map { JSON.Member(Settings.basePrefix + $0, .string($1)) }
            return JSONOutput(context.output).document(.object((values + bases).sorted { $0.name < $1.name }))
        }
        for option in SavedOption.all {
            let value = settings[option.name].map(option.shown)
            let note = value == nil ? "(default)" : "(default: \(option.usual))"
            context.print("\(option.name) = \((value ?? option.usual).visible) \(note)")
        }
        for (name, folder) in settings.bases.sorted(by: { $0.key < $1.key }) {
            context.output.writeLine("\(Settings.basePrefix)\(name) = \(folder.visible)")
        }
    }
}
