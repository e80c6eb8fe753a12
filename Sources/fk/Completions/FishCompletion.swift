/// A completion script for fish 3 and later.
struct FishCompletion: Sendable {
    let source: CompletionSource

    var script: String {
        let lines =
            [header] + source.globalOptions.map { option(of: nil, $0) } + source.groups.flatMap(groupLines)
            + source.commands.flatMap(commandLines)
        return lines.joined(separator: "\n") + "\n"
    }

    private var header: String {
        let values = source.allOptions.filter { $0.kind.takesNextWord }.flatMap(CompletionSource.spellings)
        let steps = source.groups.flatMap { group in
            source.next(in: group).map { quote((group + [$0.word]).joined(separator: " ")) }
        }
        let aliases = source.commands.flatMap { spec in
            spec.aliases.map { "test \"$command $word\" = \(quote(" " + $0)); and set word \(spec.path[0])" }
        }.joined(separator: "\n            ")
        return """
            # fish completion for fk; made by 'fk completions fish'
            # The names of barrels and tasks come from fk; fish quotes them.
            function __fk_ask
                set -l place
                set -l words (commandline -opc)
                for index in (seq (count $words))
                    if test "$words[$index]" = --work-path; and set -q words[(math $index + 1)]
                        set place --work-path (string replace -r '^~/' "$HOME/" -- $words[(math $index + 1)])
                    else if string match -q -- '--work-path=*' $words[$index]
                        set place $words[$index]
                    end
                end
                for line in (command fk completions $argv $place 2> /dev/null < /dev/null)
                    contains -- (string split -m 1 \t -- $line)[1] $words
                    or echo $line
                end
            end
            function __fk_at
                set -l command
                set -l skip 0
                for word in (commandline -opc)[2..-1]
                    if test $skip = 1
                        set skip 0
                        continue
                    end
                    if contains -- $word \(values.joined(separator: " "))
                        set skip 1
                    else if not string match -q -- '-*' $word
                        \(aliases)
                        if contains -- "$command $word" \(steps.map { $0.contains(" ") ? $0 : "' " + $0.dropFirst() }.joined(separator: " "))
                            set command (string trim -- "$command $word")
                        end
                    end
                end
                test "$command" = "$argv"
            end
            function __fk_tasks
                __fk_ask tasks $argv
                if test -n "$(commandline -ct)"
                    __fk_ask ids $argv
                end
            end
            complete -c fk -f
            """
    }

    private func groupLines(_ group: [String]) -> [String] {
        source.next(in: group).map { entry in
            "complete -c fk -n \(condition(group)) -a \(entry.word) -d \(quote(entry.summary))"
        }
    }

    private func commandLines(_ spec: CommandSpec) -> [String] {
        var lines = spec.options.map { option(of: spec.path, $0) }
        switch spec.operands.first?.hint {
        case .choices(let words):
            lines.append("complete -c fk -n \(condition(spec.path)) -a \(quote(words.joined(separator: " ")))")
        case .file: lines.append("complete -c fk -n \(condition(spec.path)) -F")
        case .barrels: lines.append("complete -c fk -n \(condition(spec.path)) -a '(__fk_ask barrels)'")
        case .tasks: lines.append("complete -c fk -n \(condition(spec.path)) -k -a '(__fk_tasks \(spec.name))'")
        default: break
        }
        return lines
    }

    private func option(of path: [String]?, _ option: OptionSpec) -> String {
        var line = "complete -c fk"
        if let path { line += " -n \(condition(path))" }
        if let short = option.short { line += " -s \(short)" }
        line += " -l \(option.long)"
        if option.kind.takesNextWord {
            switch option.hint {
            case .none: line += " -x"
            case .barrels: line += " -x -a '(__fk_ask barrels)'"
            case .tasks: line += " -x -a '(__fk_tasks)'"
            case .file: line += " -r -F"
            case .directory: line += " -x -a '(__fish_complete_directories)'"
            case .choices(let words): line += " -x -a \(quote(words.joined(separator: " ")))"
            }
        }
        return line + " -d \(quote(option.help))"
    }

    private func condition(_ path: [String]) -> String {
        path.isEmpty ? "'__fk_at \"\"'" : quote("__fk_at \(path.joined(separator: " "))")
    }

    private func quote(_ text: String) -> String {
        "'\(text.replacing("\\", with: "\\\\").replacing("'", with: "\\'"))'"
    }
}
