import Guests
import NighLoop
import Terminal

/// The code that a phone scans to come to the local player's table, with its addresses.
struct GuestCode: Hashable, Sendable {
    /// The address in the code.
    let address: String
    /// Other addresses of the same table, for networks that do not find the name in the first.
    let alternatives: [String]
    /// The lines of the picture, in white on black. Empty if there is none.
    let picture: [String]

    init(_ invitation: GuestInvitation) {
        address = invitation.url
        alternatives = invitation.alternatives
        picture = QRCode(address)?.lines ?? []
    }

    /// The size of the picture.
    var size: TerminalSize { TerminalSize(columns: picture.first?.count ?? 0, rows: picture.count) }

    /// Returns the lines to print, without anything that could harm a terminal. A picture is printed only where
    /// `style` is not nil.
    func lines(_ style: PrintedCodeStyle?, isFirst: Bool) -> [String] {
        guard let style, !picture.isEmpty else {
            let beginning = isFirst ? "To play in the browser of a phone" : "For the next phone"
            return ["\(beginning), open \(address)", GuestReception.warning]
        }
        let beginning =
            isFirst
            ? "Scan this code with a phone, to play in its browser:" : "A new code, for the next phone:"
        return [beginning, ""] + picture.map { "    " + style.paint($0) }
            + ["", "    or open  \(address)"] + alternatives.map { "         or  \($0)" }
            + ["", GuestReception.warning, ""]
    }
}

/// How the picture of a code is printed between other lines.
struct PrintedCodeStyle: Hashable, Sendable {
    /// Whether white and black are chosen by escape sequences, instead of the terminal's own colours.
    var isColoured: Bool

    /// The style for a terminal with these traits. Nil if it cannot show a picture.
    init?(_ traits: TerminalTraits, isTerminal: Bool) {
        guard traits.isUnicode else { return nil }
        isColoured = isTerminal && traits.colours != .none
    }

    fileprivate func paint(_ line: String) -> String { isColoured ? "\u{1B}[97;40m\(line)\u{1B}[0m" : line }
}

/// Passes codes for guests to the interface that shows them.
///
/// `@unchecked Sendable`: everything is set before the session starts, and then read on its loop.
final class GuestCodes: @unchecked Sendable {
    /// Makes the codes. It is used only while the session has a transport for guests.
    weak var reception: GuestReception?
    /// Shows a code.
    var handler: @Sendable (GuestCode) -> Void = { _ in }
}
