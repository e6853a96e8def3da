import FourInARow
import NighCore
import Terminal

/// The game on a terminal's screen, with its keys. A value without I/O.
///
/// The program passes in reports of the lobby (`update`) and inputs of the person (`handle`), and carries out the
/// requests that `handle` returns. It paints `canvas` after each of these calls, and when the moment of `nextChange`
/// has come. The screen requests nothing that the table would refuse.
struct Screen {
    private(set) var view: LobbyView
    let style: ScreenStyle
    /// The schemes over which the lobby looks for tables, for the sentence that names them.
    let transports: [String]
    var notices = Notices()
    var selection = TableSelection()
    var prompt: Prompt?
    /// The column where a disc would be dropped.
    var column = Column.middle
    /// The key pressed last, because the second press of a column's key drops a disc there.
    var lastPress: Input?
    private(set) var chat = ChatLog()
    private(set) var falling: FallingDisc?
    /// The peers that were answered already and are still in the view.
    var answered: Set<PeerID> = []
    /// The code that lets a guest come to the local player's table, once there is one.
    private var code: GuestCode?
    /// Whether the person wants to see the code; nil to show it while the seat is free.
    private var showsCode: Bool?
    /// The time that the session waits for somebody to come back.
    private var grace: Moment.Span?

    /// Creates a screen that shows `view`. `transports` are the schemes that the program uses.
    init(_ view: LobbyView, style: ScreenStyle, transports: [String] = [], now: Moment) {
        self.view = view
        self.style = style
        self.transports = transports
        update(view, nil, now: now)
    }

    var glyphs: Glyphs { Glyphs(isUnicode: style.isUnicode) }

    var tableView: TableView? { view.place.tableView }

    /// The first peer that waits for an answer.
    var seatRequest: SeatRequest? {
        guard case .hosting = view.place else { return nil }
        return view.seatRequests.first { !answered.contains($0.id) }
    }

    // MARK: Changes

    /// Takes the new view of the lobby, and the news that led to it.
    mutating func update(_ view: LobbyView, _ news: LobbyNews?, now: Moment) {
        let wasAtTable = tableView != nil
        if view.place.waitsForAnybody != self.view.place.waitsForAnybody { showsCode = nil }
        self.view = view
        // A code belongs to one table, and works while that can be reached.
        if !view.isOpenToGuests { code = nil }
        selection.follow(view.tables)
        answered.formIntersection(view.seatRequests.map(\.id))
        if tableView == nil, wasAtTable { leftTable() }
        if tableView != nil, !wasAtTable { enteredTable() }
        dropUselessPrompt()
        guard let news else { return }
        update(for: news, now)
        if needsSentence(news), let sentence = Sentences.sentence(for: news, in: view) {
            notices.add(sentence, now: now)
        }
    }

    /// Shows that the last request is not possible.
    mutating func showRefusal(_ breach: Breach, now: Moment) {
        notices.add(Sentences.sentence(for: breach, in: view), now: now)
    }

    /// Shows another sentence.
    mutating func addNotice(_ text: String, now: Moment) { notices.add(text, now: now) }

    /// Takes a code for guests, which replaces the one before.
    mutating func take(_ code: GuestCode) { if view.isOpenToGuests { self.code = code } }

    private mutating func leftTable() {
        chat = ChatLog()
        falling = nil
        grace = nil
        prompt = nil
        notices.clear()
    }

    private mutating func enteredTable() {
        column = .middle
        notices.clear()
        prompt = nil
    }

    /// Removes a question about something that is no longer possible.
    private mutating func dropUselessPrompt() {
        switch prompt {
        case .resign, .leave: if !isPlayingHere { prompt = nil }
        case .chat: if tableView?.table.guest == nil { prompt = nil }
        case .level: if view.place != .lobby { prompt = nil }
        case .help: if seatRequest != nil || isSeatOffered { prompt = nil }
        case nil: break
        }
    }

    /// Whether the local player is in the middle of a game.
    var isPlayingHere: Bool {
        tableView.map { $0.ownDisc != nil && $0.table.isPlaying && !$0.table.isWaiting } ?? false
    }

    // MARK: The code for guests

    /// Whether there is a code to show.
    var hasCode: Bool { code != nil }

    /// The code to draw now; nil for none. The row where a person types is not free for it.
    var shownCode: GuestCode? {
        if case .chat = prompt { return nil }
        return showsCode ?? view.place.waitsForAnybody ? code : nil
    }

    /// Shows the code, or hides it until the seat is taken or free the next time.
    mutating func toggleCode(now: Moment) {
        guard hasCode else { return addNotice(Sentences.noCode, now: now) }
        showsCode = shownCode == nil
    }

    /// Where everything is on a terminal of this size. Nil if that is too small.
    func layout(_ size: TerminalSize) -> Layout? {
        Layout(size, code: shownCode.map { CodeShape($0, withPicture: style.isUnicode) })
    }

    /// Whether the local player is asked to take the seat of a player that left.
    var isSeatOffered: Bool { tableView?.isSeatOffered ?? false }

    private mutating func update(for news: LobbyNews, _ now: Moment) {
        switch news {
        case .table(.moved(let disc, let cell)):
            falling = style.animates ? FallingDisc(disc: disc, cell: cell, start: now) : nil
        case .table(.began): falling = nil
        case .table(.said(let disc, let text)):
            guard let tableView else { return }
            let speaker = disc == tableView.ownDisc ? "you" : PlayerNames(view, tableView)[disc]
            chat.add(ChatLog.Line(disc: disc, speaker: speaker, text: text, moment: now))
        case .linkLost(let person, let waiting):
            if person.id == tableView?.other?.id { grace = Moment.Span(waiting) }
        default: break
        }
    }

    /// Returns whether a sentence announces this news. It is not needed where the screen shows the news for as long as
    /// it is true.
    private func needsSentence(_ news: LobbyNews) -> Bool {
        switch news {
        case .table(.said), .table(.ended), .table(.watched), .table(.seatOffered), .seatRequested: false
        case .linkLost(let person, _): person.id != tableView?.other?.id
        case .transport: view.place != .lobby
        default: true
        }
    }

    // MARK: Time

    /// Returns when the screen next changes by itself.
    func nextChange(after now: Moment) -> Moment? {
        [notices.nextChange(after: now), falling?.nextChange(after: now), nextSecond(after: now)]
            .compactMap { $0 }.min()
    }

    /// Returns the seconds left to wait for a person who is away, or nil if that is not known.
    func secondsLeft(now: Moment) -> Int64? {
        guard let since = tableView?.other?.linkLostAt, let grace else { return nil }
        let left = (since + grace - now).nanoseconds
        return left <= 0 ? 0 : (left - 1) / Self.second + 1
    }

    private func nextSecond(after now: Moment) -> Moment? {
        guard let since = tableView?.other?.linkLostAt, let grace, let left = secondsLeft(now: now), left > 0
        else { return nil }
        return since + grace + .seconds(1 - left)
    }

    private static let second: Int64 = 1_000_000_000

    // MARK: Drawing

    /// Returns the screen as it is now, for a terminal of this size.
    func canvas(_ size: TerminalSize, now: Moment) -> Canvas {
        guard let layout = layout(size) else { return TooSmall.canvas(size) }
        var canvas = Canvas(size)
        if let tableView {
            TableDrawing(screen: self, tableView: tableView, layout: layout, now: now).draw(into: &canvas)
        } else {
            LobbyDrawing(screen: self, layout: layout, now: now).draw(into: &canvas)
        }
        drawBox(into: &canvas, layout)
        return canvas
    }
}

extension Column {
    /// The column in which most players begin.
    static let middle = Column.allCases[Board.columns / 2]
}
