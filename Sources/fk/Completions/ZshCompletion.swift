/// A completion script for zsh: a file `_fk` in a folder of `$fpath`.
struct ZshCompletion: Sendable {
    let source: CompletionSource

    var script: String {
        let groups = source.groups.sorted { $0.count > $1.count }.map(groupFunction)
        let leaves = source.commands.map(leafFunction)
        return "#compdef fk\n# zsh completion for fk; made by 'fk completions zsh'\n\n" + Self.asking
            + (leaves + groups).joined(separator: "\n")
            + "\n[[ \"$funcstack[1]\" == _fk ]] && _fk \"$@\" || compdef _fk fk\n"
    }

    /// The names and ids come from fk. compadd quotes them; nothing of them is evaluated.
    private static let asking = #"""
        _fk__ask() {
            local -a place command
            [[ "$1" != barrels && -n "$fk_command" ]] && command=("$fk_command")
            local index=${words[(I)--work-path]} value
            if (( index )); then
                value="${words[index+1]}"
            else
                value="${${(M)words:#--work-path=*}[-1]#--work-path=}"
            fi
            # A work path that would have to be evaluated is not used.
            if [[ -n "$value" && "$value" != *[\`\$]* ]]; then place=(--work-path "${${(Q)value}/#\~\//$HOME/}"); fi
            lines=("${(@f)$(command fk completions "$1" $command $place 2> /dev/null < /dev/null)}")
            lines=(${lines:#})
        }
        _fk__barrels() {
            local -a lines
            _fk__ask barrels
            local expl
            _wanted barrels expl barrel compadd -a lines
        }
        _fk__tasks() {
            local -a lines ids shown given
            local line
            given=("${(@Q)words[1,CURRENT-1]}" "${(@Q)words[CURRENT+1,-1]}")
            _fk__ask tasks
            shown=($lines)
            if [[ -n "$PREFIX" ]]; then
                _fk__ask ids
                lines=($shown $lines)
            fi
            shown=()
            for line in $lines; do
                (( ${given[(Ie)${line%%$'\t'*}]} )) && continue
                ids+=("${line%%$'\t'*}")
                shown+=("${line/$'\t'/  }")
            done
            local expl
            _wanted tasks expl task compadd -l -d shown -a ids
        }

        """#

    private func functionName(_ path: [String]) -> String { (["_fk"] + path).joined(separator: "_") }

    private func leafFunction(_ spec: CommandSpec) -> String {
        var arguments = (spec.options + source.globalOptions.filter { !spec.refusedOptions.contains($0.long) })
            .map(optionSpec)
        for (index, operand) in spec.operands.enumerated() {
            let place = operand.maximum == nil ? "*" : "\(index + 1)"
            arguments.append(quote("\(place):\(escape(operand.name)):\(action(operand.hint))"))
        }
        let list = arguments.map { "        \($0)" }.joined(separator: " \\\n")
        let command = "    local fk_command=\(quote(spec.name))\n"
        return "\(functionName(spec.path))() {\n\(command)    _arguments -s -S \\\n\(list)\n}\n"
    }

    private func groupFunction(_ group: [String]) -> String {
        let next = source.next(in: group)
        let described = next.map { "        \(quote("\($0.word):\($0.summary)"))" }.joined(separator: "\n")
        let cases = next.map { entry in
            "            \(names(of: group + [entry.word]))) \(functionName(group + [entry.word])) ;;"
        }.joined(separator: "\n")
        let global = source.globalOptions.map { "        \(optionSpec($0))" }.joined(separator: " \\\n")
        return """
            \(functionName(group))() {
                local curcontext="$curcontext" state line
                local -a commands=(
            \(described)
                )
                _arguments -C -s -S \\
            \(global) \\
                    '1:command:->command' '*::argument:->argument'
                case "$state" in
                    command) _describe -t commands 'command' commands ;;
                    argument)
                        case "$line[1]" in
            \(cases)
                        esac ;;
                esac
            }

            """
    }

    /// `forget|rm`
    private func names(of path: [String]) -> String {
        ([path[path.count - 1]] + (source.commands.first { $0.path == path }?.aliases ?? [])).joined(separator: "|")
    }

    private func optionSpec(_ option: OptionSpec) -> String {
        let help = "[\(escape(option.help))]"
        let value = !option.kind.takesNextWord ? "" : ":\(escape(option.valueName)):\(action(option.hint))"
        let star = option.kind == .repeated ? "*" : ""
        let long = "--\(option.long)" + (!option.kind.takesNextWord ? "" : "=")
        guard let short = option.short else { return quote("\(star)\(long)\(help)\(value)") }
        let shortForm = "-\(short)" + (!option.kind.takesNextWord ? "" : "+")
        // With `*` an option may repeat; otherwise its two spellings exclude each other.
        let exclusion = option.kind == .repeated ? "" : "(-\(short) --\(option.long))"
        return "\(quote(star + exclusion)){\(shortForm),\(long)}\(quote(help + value))"
    }

    private func action(_ hint: CompletionHint) -> String {
        switch hint {
        case .none: " "
        case .barrels: "_fk__barrels"
        case .tasks: "_fk__tasks"
        case .file: "_files"
        case .directory: "_files -/"
        case .choices(let words): "(\(words.joined(separator: " ")))"
        }
    }

    private func escape(_ text: String) -> String {
        text.replacing("[", with: "\\[").replacing("]", with: "\\]").replacing(":", with: "\\:")
    }

    private func quote(_ text: String) -> String { "'\(text.replacing("'", with: "'\\''"))'" }
}
