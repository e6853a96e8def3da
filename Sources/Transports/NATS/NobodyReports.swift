import CNATS
import NighCore

/// The server's reports that nobody subscribes to a subject. The library does not name the subject of such a report
/// when it is taken from a subscription, so these have a subscription that the library delivers. It refers to this by
/// its address.
final class NobodyReports {
    /// The last token of the subjects of reports. The subject for answers precedes it.
    static let suffix = ".nobody"

    private let inbox: Inbox
    private let link: UInt64
    private let library: UnsafePointer<CNATSFunctions>

    /// Creates the reports on the link numbered `link`.
    init(into inbox: Inbox, of link: UInt64, _ library: UnsafePointer<CNATSFunctions>) {
        self.inbox = inbox
        self.link = link
        self.library = library
    }

    func received(_ message: OpaquePointer) {
        defer { library.pointee.Msg_Destroy(message) }
        guard library.pointee.Msg_IsNoResponders(message),
            let subject = library.pointee.Msg_GetSubject(message)
        else { return }
        inbox.add(.foundNobody(Self.answers(at: String(cString: subject))), of: link)
    }

    /// The subject that covers the reports for all subjects for answers that differ from `answers` in the last
    /// token.
    static func subject(around answers: String) -> String {
        let start = answers.lastIndex(of: ".").map { answers[...$0] } ?? ""
        return "\(start)*\(suffix)"
    }

    static func answers(at subject: String) -> String {
        subject.hasSuffix(suffix) ? String(subject.dropLast(suffix.count)) : subject
    }
}
