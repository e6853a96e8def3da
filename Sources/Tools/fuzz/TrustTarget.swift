import NighCore

/// The trust store's file, as people and disks change it, and the names that strangers give themselves. What can be
/// read must stay the same when it is written and read again.
enum TrustTarget {
    private static let peers = (1...6).compactMap { PeerID(bytes: [UInt8](repeating: $0, count: 32)) }
    private static let days = ["0001-01-01", "2024-02-29", "2026-11-21", "9999-12-31"]
    private static let names = [
        "Ada", "Ada's den", "Puma #2", "\"", "\\", "\\u{41}", "a\u{301}", "\u{301}", "\u{202E}nooP", " ", "#",
        "  x  ",
        "\u{85}", "\u{2028}", "👩‍👩‍👧", "\u{FEFF}", "\u{E000}", "é", "nigh-peers 1", "e\u{301}\u{301}",
    ]
    private static let pieces =
        names + days + peers.map(\.description) + [
            "\n", "\r\n", "\r", "\t", " ", "\"", "\\", "\\u{", "}", "\\u{a}", "\\u{d800}", "\\u{110000}",
            "\\u{0}", "#",
            "# a remark", "paired", "known", "nigh-peers", "nigh-peers 1\n", "nigh-peers 2\n", "-", "0", "\0",
            "\u{A0}",
        ]

    /// Returns whether the text was understood.
    @discardableResult
    static func run(_ mutator: inout Mutator) throws -> Bool {
        var text = "nigh-peers 1\n"
        for peer in peers.prefix(mutator.number(below: peers.count + 1)) {
            if mutator.oneIn(4) { text += mutator.pick(["\n", "# a remark\n", "  # another  \n"]) }
            text +=
                mutator.pick(["paired ", "known\t"]) + "\(peer) \(mutator.pick(days)) \(mutator.pick(days)) "
            text += "\"Ada\"" + mutator.pick(["", "", "  # hers", "\r"]) + "\n"
        }
        if !mutator.oneIn(8) { for _ in 0...mutator.number(below: 6) { mutator.change(&text, with: pieces) } }
        var book: TrustBook
        do throws(TrustText.Fault) {
            book = try TrustText.book(of: text)
        } catch {
            if error.reason.isEmpty || error.advice.isEmpty { throw Finding("refused without a reason") }
            return false
        }
        try check(book, of: text)
        // A peer that was met is recorded under the name that it gave.
        guard let day = CalendarDay(mutator.pick(days)) else { return true }
        for _ in 0...mutator.number(below: 4) {
            var name = mutator.pick(names)
            for _ in 0...mutator.number(below: 3) { mutator.change(&name, with: names) }
            let fitting = DisplayName(fitting: name)
            let changes: [TrustChange] = [
                .remember(fitting, on: day), .pair(fitting, on: day), .forget, .unpair,
            ]
            book.apply(mutator.pick(changes), to: mutator.pick(peers))
            try check(book, of: text)
        }
        return true
    }

    private static func check(_ book: TrustBook, of text: String) throws {
        let written = TrustText.text(of: book)
        do {
            let again = try TrustText.book(of: written)
            // Compared byte by byte: different bytes are a different name, even if they look the same.
            guard bytes(of: TrustText.text(of: again)) == bytes(of: written) else {
                throw Finding("\(written.debugDescription) is written differently after it was read")
            }
            guard content(of: again) == content(of: book) else {
                throw Finding("\(text.debugDescription) differs when it is written and read again")
            }
        } catch let fault as TrustText.Fault {
            throw Finding("\(written.debugDescription) was written and is not a trust store: \(fault.reason)")
        }
    }

    /// Returns the bytes without the empty lines at the end, which remain after the last peer was forgotten.
    private static func bytes(of text: String) -> [UInt8] {
        var bytes = Array(text.utf8)
        while bytes.last == UInt8(ascii: "\n") { bytes.removeLast() }
        return bytes
    }

    private static func content(of book: TrustBook) -> [PeerID: [[UInt8]]] {
        book.entries.mapValues { entry in
            [
                Array(entry.name.description.utf8), [entry.isPaired ? 1 : 0], Array("\(entry.since)".utf8),
                Array("\(entry.lastSeen)".utf8), Array(entry.comment.utf8),
            ]
        }
    }
}
