/// A completion script for bash 3.2 and later. It needs only bash.
struct BashCompletion: Sendable {
    let source: CompletionSource

    var script: String {
        """
        # bash completion for fk; made by 'fk completions bash'
        _fk() {
            local cur="${COMP_WORDS[COMP_CWORD]}" prev="${COMP_WORDS[COMP_CWORD-1]}"
            local word command="" skip="" i
            COMPREPLY=()
            # '=' is a word of its own for bash: --color=al is three words.
            if [[ "$cur" == "=" ]]; then
                cur=""
            elif [[ "$prev" == "=" ]]; then
                prev="${COMP_WORDS[COMP_CWORD-2]}"
            fi
            # The words of the command, without options and their values.
            for (( i = 1; i < COMP_CWORD; i++ )); do
                word="${COMP_WORDS[i]}"
                if [[ "$word" == "=" ]]; then skip=1; continue; fi
                if [[ -n "$skip" ]]; then skip=""; continue; fi
                case "$word" in
                    \(valueOptions)) [[ "${COMP_WORDS[i+1]}" == "=" ]] || skip=1 ;;
                    -*) ;;
                    *) case "$command/$word" in
                        \(commandSteps)) command="${command:+$command }$word" ;;
                    esac ;;
                esac
            done
            # The value of an option.
            case "$prev" in
        \(values)
            esac
            # Options.
            if [[ "$cur" == -* ]]; then
                case "$command" in
        \(options)
                esac
                return
            fi
            # The next word of a command, or its arguments.
            case "$command" in
        \(operands)
            esac
        }
        complete -F _fk fk

        """
    }

    private var valueOptions: String {
        source.allOptions.filter { $0.kind != .flag }.flatMap(CompletionSource.spellings).joined(separator: "|")
    }

    private var commandSteps: String {
        source.groups.flatMap { group in
            source.next(in: group).map { "\"\(group.joined(separator: " "))/\($0.word)\"" }
        }.joined(separator: "|")
    }

    private var values: String {
        source.allOptions.filter { $0.kind != .flag }.map { option in
            let spellings = CompletionSource.spellings(option).joined(separator: "|")
            return "        \(spellings)) \(action(option.hint)) return ;;"
        }.joined(separator: "\n")
    }

    private var options: String {
        let global = source.globalOptions.flatMap(CompletionSource.spellings)
        let own = source.commands.filter { !$0.options.isEmpty }.map { spec in
            let words = spec.options.flatMap(CompletionSource.spellings) + global
            return "            \"\(spec.name)\") \(wordList(words)) ;;"
        }
        return (own + ["            *) \(wordList(global)) ;;"]).joined(separator: "\n")
    }

    private var operands: String {
        let groups = source.groups.map { group in
            "        \"\(group.joined(separator: " "))\") \(wordList(source.next(in: group).map(\.word))) ;;"
        }
        let leaves = source.commands.compactMap { spec -> String? in
            guard let hint = spec.operands.first?.hint, hint != .none else { return nil }
            return "        \"\(spec.name)\") \(action(hint)) ;;"
        }
        let help = "        \"help\") \(wordList(source.next(in: []).map(\.word))) ;;"
        return (groups + leaves + [help]).joined(separator: "\n")
    }

    private func wordList(_ words: [String]) -> String {
        "COMPREPLY=( $(compgen -W \"\(words.joined(separator: " "))\" -- \"$cur\") );"
    }

    private func action(_ hint: CompletionHint) -> String {
        switch hint {
        case .none: ""
        case .file: "compopt -o filenames 2>/dev/null; local IFS=$'\\n'; COMPREPLY=( $(compgen -f -- \"$cur\") );"
        case .directory: "compopt -o filenames 2>/dev/null; local IFS=$'\\n'; COMPREPLY=( $(compgen -d -- \"$cur\") );"
        case .choices(let words): wordList(words)
        }
    }
}
