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
    }

    private let folder: GuideFolder
    private let subject: Subject
    private let opensBrowser: Bool

    /// Returns nil if `arguments` do not ask for a guide, or for one that is not there.
    init?(_ arguments: [String], folder: @autoclosure () -> GuideFolder? = .ofThisProgram) {
        guard arguments.first == "help" else { return nil }
        let names = arguments.dropFirst().filter { $0 != "--open" }
        opensBrowser = names.count < arguments.count - 1
        guard names.count <= 1, opensBrowser || !names.isEmpty, let folder = folder() else { return nil }
        self.folder = folder
        switch names.first {
        case nil, "guides": subject = .list
        case let name? where CheckCode.all.contains { $0.code == name.uppercased() }:
            subject = .check(name.uppercased())
        case let name?:
            guard let guide = folder.guides.first(where: { $0.name == name }) else { return nil }
            subject = .guide(guide)
        }
    }

    /// Shows what was asked for. Returns the exit status.
    func run() -> Int32 {
        if opensBrowser { return open() }
        guard let lines else { return failed("the guide cannot be read from \(folder.path)") }
        let isColoured = isTerminal(STDOUT_FILENO) && TerminalTraits.ofThisProcess.colours != .none
        let text = lines.map { "\($0.text(colours: isColoured))\n" }.joined()
        return (isTerminal(STDOUT_FILENO) ? Pager.show(text) : LineOutput.write(text, to: STDOUT_FILENO))
            ? 0 : 1
    }

    private var lines: [Line]? {
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
        }
    }

    private func open() -> Int32 {
        guard let site = folder.site else {
            return failed("the pages are not built; run `make docs` in the folder of Nigh's sources")
        }
        let page =
            switch subject {
            case .list: "index.html"
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

    private func failed(_ reason: String) -> Int32 {
        LineOutput.printError(reason, by: "nigh")
        return 1
    }
}
