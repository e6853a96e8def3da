import Arguments
import Glibc
import ProgramSupport
import Terminal

/// `nigh help GUIDE`, `nigh help N17`, `nigh help guides` and `nigh help --open`: the guides, in the terminal or in a
/// browser.
///
/// The help of commands is not among these: `Program` has it.
struct HelpRequest {
    private enum Subject {
        case list
        case guide(GuideFolder.Guide)
        case check(String)
        /// No guide or command has this name.
        case unknown(String)
    }

    /// Nil if this program has no guides.
    private let folder: GuideFolder?
    private let subject: Subject
    private let opensBrowser: Bool

    /// Returns nil if `arguments` ask for the help of a command, or for no help.
    init?(_ arguments: [String], folder: @autoclosure () -> GuideFolder? = .ofThisProgram) {
        guard arguments.first == "help" else { return nil }
        let names = arguments.dropFirst().filter { $0 != "--open" }
        opensBrowser = names.count < arguments.count - 1
        guard names.count <= 1, opensBrowser || !names.isEmpty else { return nil }
        self.folder = folder()
        switch names.first {
        case nil, "guides": subject = .list
        case let name? where CheckCode.all.contains { $0.code == name.uppercased() }:
            subject = .check(name.uppercased())
        case let name?:
            if let guide = self.folder?.guides.first(where: { $0.name == name }) {
                subject = .guide(guide)
            } else if opensBrowser || (try? NighProgram.table.help(for: [name])) == nil {
                subject = .unknown(name)
            } else {
                return nil
            }
        }
    }

    /// Shows the requested help. Returns the exit status.
    func run() -> Int32 {
        if case .unknown(let name) = subject { return failed(unknown(name), UsageError.status) }
        guard let folder else { return failed(Self.noGuides, 1) }
        if opensBrowser { return open(in: folder) }
        guard let lines = lines(in: folder) else {
            return failed("the guide cannot be read from \(folder.path)", 1)
        }
        let isColoured = isTerminal(STDOUT_FILENO) && TerminalTraits.ofThisProcess.colours != .none
        let text = lines.map { "\($0.text(colours: isColoured))\n" }.joined()
        return (isTerminal(STDOUT_FILENO) ? Pager.show(text) : LineOutput.write(text, to: STDOUT_FILENO))
            ? 0 : 1
    }

    private static var noGuides: String {
        "this nigh has no guides: they would be in \(GuideFolder.installedPath), where the Debian package nigh and "
            + "`make install` put them"
    }

    private func unknown(_ name: String) -> String {
        let known = NighProgram.table.commandNames + (folder?.guides.map(\.name) ?? [])
        let advice =
            SpellingSuggestion.closest(to: name, among: known).map { "did you mean \($0)?" }
            ?? (folder == nil ? Self.noGuides : "`nigh help guides` lists the guides")
        return
            "\(UsageError("there is no command or guide \"\(name.prefix(60))\": \(advice)").addingReference(to: "nigh --help"))"
    }

    private func lines(in folder: GuideFolder) -> [Line]? {
        let width = TerminalWidth.forHelp
        switch subject {
        case .list:
            let widest = folder.guides.map(\.name.count).max() ?? 0
            return folder.guides.map { guide in
                Line("nigh help ", .faint) + Line(guide.name, .strong).padded(to: widest + 2)
                    + Line(guide.title)
            }
        case .guide(let guide):
            return folder.text(of: guide).map { GuideText.lines(of: $0, width: width) }
        case .check(let code):
            return folder.checks.flatMap { folder.text(of: $0) }
                .flatMap { GuideText.section(code, of: $0) }
                .map { GuideText.lines(of: $0, width: width) }
        case .unknown: return nil
        }
    }

    private func open(in folder: GuideFolder) -> Int32 {
        guard let site = folder.site else {
            let remedy =
                folder.sources.map { "run `make docs` in \($0)" } ?? "install the Debian package nigh-doc"
            return failed(
                "the pages for a browser are not there: \(remedy), or read the guides here with `nigh help guides`",
                1)
        }
        let page =
            switch subject {
            case .list, .unknown: "index.html"
            case .guide(let guide): guide.page
            case .check(let code): folder.checks.map { "\($0.page)#\(code.lowercased())" } ?? "index.html"
            }
        let address = "file://\(site)/\(page)"
        guard Browser.open(address) else {
            _ = LineOutput.write("\(address)\n", to: STDOUT_FILENO)
            LineOutput.printError("no browser can be started here; open the address above in one", by: "nigh")
            return 0
        }
        return 0
    }

    private func failed(_ reason: String, _ status: Int32) -> Int32 {
        LineOutput.printError(reason, by: "nigh")
        return status
    }
}
