import FourInARow

/// Decides when a code for guests is printed: once, while a table waits for somebody, or when the person asks.
struct CodeAnnouncement {
    private var code: GuestCode?
    private var isPrinted = false
    private var isFirst = true
    private var isRequested = false

    /// Takes a code, which replaces the one before.
    mutating func take(_ code: GuestCode) {
        self.code = code
        isPrinted = false
    }

    /// Lets the next code be printed in any case.
    mutating func request() { isRequested = true }

    /// Returns the lines to print now, if any.
    mutating func lines(for view: LobbyView, _ style: PrintedCodeStyle?) -> [String] {
        guard view.isOpenToGuests else {
            // A code belongs to one table, and works while that can be reached.
            code = nil
            isRequested = false
            return []
        }
        guard let code, !isPrinted, isRequested || view.place.waitsForAnybody else { return [] }
        defer { (isPrinted, isFirst, isRequested) = (true, false, false) }
        return code.lines(style, isFirst: isFirst)
    }
}

extension Place {
    /// Whether the local player hosts a table whose seat anybody may take.
    var waitsForAnybody: Bool {
        guard case .hosting(let tableView) = self else { return false }
        return tableView.table.guest == nil && !tableView.table.isWaiting
    }
}
