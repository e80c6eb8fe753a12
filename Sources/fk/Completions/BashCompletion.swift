/// A completion script for bash 3.2 and later. It needs only bash.
struct BashCompletion: Sendable {
    let source: CompletionSource

    var script: String {
        #"""
        # bash completion for fk; made by 'fk completions bash'
        # The names of barrels and tasks come from fk. Neither they nor the words of the line are ever evaluated.
        __fk_words() {
            local word rest shown given typed="$value"
            local -a place=()
            [[ -n "$path" ]] && place=(--work-path "$path")
            [[ -n "$quote" ]] && typed="${typed#?}"
            while IFS=$'\t' read -r word rest; do
                case "$quote" in
                    "'") [[ "$word" == *"'"* ]] && continue; shown="$word" ;;
                    '"')
                        shown="${word//\\/\\\\}"; shown="${shown//\"/\\\"}"
                        shown="${shown//\$/\\\$}"; shown="${shown//\`/\\\`}" ;;
                    *) printf -v shown '%q' "$word" ;;
                esac
                for given in "${words[@]:1}"; do [[ "$given" == "$shown" ]] && continue 2; done
                [[ "$shown" == "$typed"* ]] && COMPREPLY+=("${quote}$shown")
            done < <(command "$program" completions "$1" ${2+"$2"} ${place[@]+"${place[@]}"} 2> /dev/null < /dev/null)
        }
        _fk() {
            local line="${COMP_LINE:0:COMP_POINT}" word="" quote="" kept=0 c i
            local cur value prev="" program="${COMP_WORDS[0]}" path="" command="" topic="" skip="" ended="" count=0
            local -a words=()
            COMPREPLY=()
            # The words as they were typed, because bash divides them at '=', ':' and '@', too. readline keeps what stands
            # before the last of these characters, or before an open quotation mark.
            for (( i = 0; i < ${#line}; i++ )); do
                c="${line:i:1}"
                if [[ -n "$quote" ]]; then
                    [[ "$c" == "$quote" ]] && quote=""
                    word+="$c"
                elif [[ "$c" == '\' ]]; then
                    i=$(( i + 1 )); word+="$c${line:i:1}"
                elif [[ "$c" == " " || "$c" == $'\t' ]]; then
                    [[ -n "$word" ]] && words+=("$word")
                    word="" kept=0
                else
                    word+="$c"
                    case "$c" in
                        "'"|'"') quote="$c" kept=${#word} ;;
                        [=:]) [[ "$COMP_WORDBREAKS" == *"$c"* ]] && kept=${#word} ;;
                        # readline replaces this one, too.
                        @) [[ "$COMP_WORDBREAKS" == *"$c"* ]] && kept=$(( ${#word} - 1 )) ;;
                    esac
                fi
            done
            cur="$word" value="$word"
            type -P -- "$program" > /dev/null 2>&1 || program=fk
            # The words of the command, without options and their values.
            for word in "${words[@]:1}"; do
                if [[ -n "$ended" ]]; then
                    count=$(( count + 1 ))
                    continue
                fi
                if [[ -n "$skip" ]]; then
                    # A work path that would have to be evaluated is not used.
                    [[ "$skip" == --work-path && "$word" != *[\'\"\\\$\`]* ]] && path="${word/#\~\//$HOME/}"
                    skip=""
                    continue
                fi
                case "$word" in
                    --work-path=*) [[ "$word" != *[\'\"\\\$\`]* ]] && path="${word#*=}" ;;
                    \#(valueOptions)) skip="$word" ;;
                    --) ended=1 ;;
                    -*) ;;
                    *) case "$command/$word" in
        \#(aliases)                \#(commandSteps)) command="${command:+$command }$word" ;;
                        *) count=$(( count + 1 )) topic="${topic:+$topic }$word" ;;
                    esac ;;
                esac
            done
            prev="$skip"
            if [[ "$cur" == --*=* && -z "$ended" ]]; then
                prev="${cur%%=*}" value="${cur#*=}"
            fi
            kept=$(( kept - ${#cur} + ${#value} ))
            __fk_complete
            for i in ${COMPREPLY[@]+"${!COMPREPLY[@]}"}; do COMPREPLY[i]="${COMPREPLY[i]:kept}"; done
        }
        __fk_complete() {
            # The value of an option.
            case "$command:$prev" in
        \#(values)
            esac
            # Options.
            if [[ "$cur" == -* && -z "$ended" ]]; then
                case "$command" in
        \#(options)
                esac
                return
            fi
            # The command that help is about.
            if [[ "$command" == help ]]; then
                case "$topic" in
        \#(topics)
                esac
                return
            fi
            # The next word of a command, or its arguments.
            case "$command:$count" in
        \#(operands)
            esac
        }
        complete -F _fk fk

        """#
    }

    private var valueOptions: String {
        source.allOptions.filter { $0.kind.takesNextWord }.flatMap(CompletionSource.spellings).joined(separator: "|")
    }

    private var aliases: String {
        source.commands.filter { !$0.aliases.isEmpty }.map { spec in
            let words = spec.aliases.map { "\"/\($0)\"" }.joined(separator: "|")
            return "                \(words)) command=\"\(spec.name)\" ;;\n"
        }.joined()
    }

    private var commandSteps: String {
        source.groups.flatMap { group in
            source.next(in: group).map { "\"\(group.joined(separator: " "))/\($0.word)\"" }
        }.joined(separator: "|")
    }

    private var values: String {
        func line(_ command: String, _ option: OptionSpec) -> String {
            let patterns = CompletionSource.spellings(option).map { "\(command):\($0)" }.joined(separator: "|")
            return "        \(patterns)) \(action(option.hint)) return ;;"
        }
        let all = source.allOptions.filter { $0.kind.takesNextWord }
        let hints = Dictionary(uniqueKeysWithValues: all.map { ($0.long, $0.hint) })
        // The first pattern counts: commands that take other values than the others stand first.
        let own = source.commands.flatMap { spec in
            spec.options.filter { option in hints[option.long].map { $0 != option.hint } ?? false }
                .map { line("\"\(spec.name)\"", $0) }
        }
        return (own + all.map { line("*", $0) }).joined(separator: "\n")
    }

    private var topics: String {
        source.groups.map { group in
            "            \"\(group.joined(separator: " "))\") \(wordList(source.next(in: group).map(\.word))) ;;"
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
            "        \"\(group.joined(separator: " ")):\"*) \(wordList(source.next(in: group).map(\.word))) ;;"
        }
        let leaves = source.commands.flatMap { spec in
            spec.operands.enumerated().compactMap { index, operand -> String? in
                guard operand.hint != .none else { return nil }
                let place = operand.maximum == nil ? "\"\(spec.name):\"*" : "\"\(spec.name):\(index)\""
                return "        \(place)) \(action(operand.hint)) ;;"
            }
        }
        return (groups + leaves).joined(separator: "\n")
    }

    private func wordList(_ words: [String]) -> String {
        "COMPREPLY=( $(compgen -W \"\(words.joined(separator: " "))\" -- \"$value\") );"
    }

    private func action(_ hint: CompletionHint) -> String {
        switch hint {
        case .none: ""
        case .file: "compopt -o filenames 2>/dev/null; local IFS=$'\\n'; COMPREPLY=( $(compgen -f -- \"$value\") );"
        case .directory:
            "compopt -o filenames 2>/dev/null; local IFS=$'\\n'; COMPREPLY=( $(compgen -d -- \"$value\") );"
        case .choices(let words): wordList(words)
        case .barrels: "__fk_words barrels;"
        case .tasks: "__fk_words tasks \"$command\"; if [[ -n \"$value\" ]]; then __fk_words ids \"$command\"; fi;"
        }
    }
}
