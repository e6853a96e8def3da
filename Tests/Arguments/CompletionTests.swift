import Testing

@testable import Arguments

/// Runs the completion scripts in the real shells.
@Suite("Completion")
struct CompletionTests {
    /// Command lines, and the candidates that are offered for their last word.
    private static let cases: [(line: String, offered: String)] = [
        ("try-it s", "scan send"),
        ("try-it --v", "--version"),
        ("try-it send --a", "--animation"),
        ("try-it send --n", "--name --no-animation"),
        ("try-it send -n scan --transport ", "bluetooth memory tcp"),
        ("try-it send --transport=m", "--transport=memory"),
        ("try-it trust a", "add"),
        ("try-it trust ", "add forget help"),
        ("try-it help tr", "trust"),
        ("try-it help trust ", "add forget"),
        ("try-it trust help f", "forget"),
        ("try-it help cha", "chapter"),
        ("try-it give ly", "lynx"),
        ("try-it give /etc/os-rel", "/etc/os-release"),
        ("try-it trust add ", "puma"),
        ("try-it trust add puma ", ""),
        ("try-it offer ", "bash fish zsh"),
        ("try-it offer --rate 64kbit/s f", "fish"),
        ("try-it offer --rate=64kbit/s f", "fish"),
        ("try-it offer bash ", ""),
        ("try-it send /etc/os-rel", "/etc/os-release"),
        ("try-it send --limit 1 /etc/os-rel", "/etc/os-release"),
        ("try-it scan --sec", ""),
        ("try-it send -- --an", ""),
        ("try-it trust h", "help"),
        ("try-it trust hi", ""),
    ]

    private static func expected(_ offered: (String) -> String = { $0 }) -> [String] {
        cases.map { "\($0.line) => \(offered($0.offered))" }
    }

    @Test func `Bash offers the words that can come next`() throws {
        var text = Sample.program.completion(for: .bash)
        text += """
            try() {
                COMP_WORDS=("$@")
                COMP_CWORD=$((${#COMP_WORDS[@]} - 1))
                _try_it
                local sorted
                mapfile -t sorted < <(printf '%s\\n' "${COMPREPLY[@]}" | sort)
                echo "$* => ${sorted[*]}"
            }
            complete -p try-it

            """
        for (line, _) in Self.cases {
            let words = line.split(separator: " ", omittingEmptySubsequences: false)
            text += "try \(words.map { ShellText.quoted(String($0)) }.joined(separator: " "))\n"
        }
        // Bash splits `--transport=b` into three words.
        text += "try try-it send --transport = b\ntry try-it send --transport =\ntry try-it send --to p\n"
        let said = try ShellScript(text).lines(of: "bash --norc SCRIPT")
        #expect(
            said == ["complete -F _try_it try-it"] + Self.expected() + [
                "try-it send --transport = b => bluetooth",
                "try-it send --transport = => bluetooth memory tcp",
                "try-it send --to p => puma\\$\\(false\\)",
            ])
    }

    @Test(arguments: ["no-qmark-noglob", "qmark-noglob"])
    func `Fish offers the words that can come next, before version 4 and since`(feature: String) throws {
        var text = Sample.program.completion(for: .fish)
        for (line, _) in Self.cases {
            text +=
                "echo '\(line) =>' (complete --do-complete '\(line)' | string replace --regex '\\t.*' '')\n"
        }
        text += "complete --do-complete 'try-it send --to p'\ncomplete --do-complete 'try-it send --verb'\n"
        let said = try ShellScript(text).lines(
            of: "env HOME=/nonexistent fish --no-config --features \(feature) SCRIPT")
        let expected = Self.cases.map { $0.offered.isEmpty ? "\($0.line) =>" : "\($0.line) => \($0.offered)" }
        #expect(
            said == expected + [
                "puma$(false)\twhom to send it to", "--verbose\tsays more: [all] of it, that's it",
            ])
    }

    @Test func `Zsh completes the words that can come next, in a terminal`() throws {
        let unique =
            Self.cases.filter { !$0.offered.isEmpty && !$0.offered.contains(" ") } + [
                ("try-it send --to p", "puma$(false)"), ("try-it send --lim", "--limit"),
            ]
        let said = try zsh("try-it", Sample.program.completion(for: .zsh), unique.map(\.line))
        let expected = unique.map { line, offered in
            (line.split(separator: " ", omittingEmptySubsequences: false).dropLast().map(String.init) + [
                offered
            ])
            .joined(separator: " ")
        }
        #expect(said == expected)
    }

    /// Types the command lines into zsh in a pseudo-terminal, each followed by Tab and Return; returns what zsh then
    /// ran.
    private func zsh(_ program: String, _ completion: String, _ lines: [String]) throws -> [String] {
        let completion = ShellScript(completion)
        #expect(try completion.lines(of: "zsh -n SCRIPT") == [])
        var text = """
            zmodload zsh/zpty
            zpty terminal zsh -f -i
            zpty -w terminal '\(program)() { print -r -- "GOT<\(program) $*>" }'
            zpty -w terminal 'autoload -U compinit; compinit -u -D; source \(completion.path); print GOT"<ready>"'
            zpty -r terminal said '*GOT<ready>*'

            """
        for line in lines {
            text += """
                zpty -w -n terminal \(ShellText.quoted(line))$'\\t\\r'
                zpty -r terminal said '*GOT<*>*'
                print -r -- ${${said#*GOT<}%>*}

                """
        }
        let said = try ShellScript(text + "zpty -d terminal\n").lines(of: "env TERM=dumb zsh -f SCRIPT")
        return said.map { $0.hasSuffix(" ") ? String($0.dropLast()) : $0 }
    }

    @Test func `No declared text is run by a shell, whatever characters it has`() throws {
        let words = ["it's", "$(echo no)", "`no`", "a;b", "c d", "\\", "*"]
        let program = Program(
            Command("odd", "Takes odd words", Operand("WORD", .choice(words), "it's \"$(no)\" [odd]: *")) {
                $0
            })
        let bash = """
            COMP_WORDS=(odd ''); COMP_CWORD=1; _odd
            for word in "${COMPREPLY[@]}"; do eval "echo $word"; done
            """
        #expect(
            try ShellScript(program.completion(for: .bash) + bash).lines(of: "bash --norc SCRIPT") == words)
        let fish = "complete --do-complete 'odd ' | string replace --regex '\\t.*' ''"
        let offered = try ShellScript(program.completion(for: .fish) + fish).lines(
            of: "env HOME=/nonexistent fish --no-config SCRIPT")
        #expect(offered.sorted() == words.sorted())
        let typed = ["it", "\\$", "\\`", "a\\;", "c", "\\\\", "\\*"]
        let said = try zsh("odd", program.completion(for: .zsh), typed.map { "odd \($0)" })
        #expect(said == words.map { "odd \($0)" })
    }
}
