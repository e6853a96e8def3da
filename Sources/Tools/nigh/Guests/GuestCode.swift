import Guests
import JSONText
import NighLoop
import Terminal

/// An invitation for a guest, as the commands show it: a QR code, and the addresses below it.
enum GuestCode {
    static let kind = Results.Kind("guest_invitation", plural: "guest_invitations")

    /// Reports an invitation.
    static func report(_ invitation: GuestInvitation, isRenewed: Bool, _ results: Results) {
        results.report(kind, members(of: invitation), lines: lines(for: invitation, isRenewed: isRenewed))
    }

    static func members(of invitation: GuestInvitation) -> [JSON.Member] {
        [
            .init("url", .text(invitation.url)),
            .init("alternatives", .list(invitation.alternatives.map { .text($0) })),
            .init("valid_seconds", .integer(Int(invitation.validity.components.seconds))),
        ]
    }

    /// The code in a terminal of this width, with instructions and a warning.
    static func lines(
        for invitation: GuestInvitation, isRenewed: Bool, width: Int = TerminalWidth.forHelp
    ) -> [Line] {
        let minutes = max(invitation.validity.components.seconds / 60, 1)
        let beginning =
            isRenewed ? "The code above is over. Here is a new one" : "Scan this code with the phone"
        var lines: [Line] = [Line("\(beginning); it lets in one device, within \(minutes) min:"), ""]
        if let code = QRCode(invitation.url), code.columns + 4 <= width {
            lines += code.lines.map { Line("    ") + Line($0, .paper) } + [""]
        }
        lines.append(Line("    or open  ") + Line(invitation.url, .strong))
        lines += invitation.alternatives.map { Line("         or  \($0)") }
        return lines + ["", Line(GuestReception.warning, .warning), ""]
    }
}
