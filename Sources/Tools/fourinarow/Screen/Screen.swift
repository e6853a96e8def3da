import FourInARow
import NighCore
import Terminal

/// What the person at the terminal sees of the game, and what the keys do. A value without I/O.
///
/// The program passes in what the lobby reports (`take`) and what the person does (`handle`), and does what `handle`
/// returns. It paints `canvas` after each of these calls, and when the moment of `nextChange` has come. The screen
/// requests nothing that the table would refuse.
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
    private(set) var chat = ChatLog()
    private(set) var falling: FallingDisc?
    /// The peers that were answered already and are still in the view.
    var answered: Set<PeerID> = []
    /// The time that the session waits for somebody to come back.
    private var grace: Moment.Span?

    /// Creates a screen that shows `view`. `transports` are the schemes that the program uses.
    init(_ view: LobbyView, style: ScreenStyle, transports: [String] = [], now: Moment) {
        self.view = view
        self.style = style
        self.transports = transports
        take(view, nil, now: now)
    }

    var glyphs: Glyphs { Glyphs(isUnicode: style.isUnicode) }

    var sitting: Sitting? { view.place.sitting }

    /// The first peer that waits for an answer.
    var asker: Asker? {
        guard case .hosting = view.place else { return nil }
        return view.askers.first { !answered.contains($0.id) }
    }

    // MARK: Changes

    /// Takes the new view of the lobby, and the news that led to it.
    mutating func take(_ view: LobbyView, _ news: LobbyNews?, now: Moment) {
        let wasAtTable = sitting != nil
        self.view = view
        selection.follow(view.tables)
        answered.formIntersection(view.askers.map(\.id))
        if sitting == nil, wasAtTable { leftTable() }
        if sitting != nil, !wasAtTable { cameToTable() }
        dropUselessPrompt()
        guard let news else { return }
        take(news, now)
        if needsSentence(news), let sentence = Sentences.sentence(for: news, in: view) {
            notices.add(sentence, now: now)
        }
    }

    /// Shows that the last request is not possible.
    mutating func refused(_ breach: Breach, now: Moment) {
        notices.add(Sentences.sentence(for: breach, in: view), now: now)
    }

    /// Shows another sentence.
    mutating func tell(_ words: String, now: Moment) { notices.add(words, now: now) }

    private mutating func leftTable() {
        chat = ChatLog()
        falling = nil
        grace = nil
        prompt = nil
        notices.clear()
    }

    private mutating func cameToTable() {
        column = .middle
        notices.clear()
        prompt = nil
    }

    /// Removes a question about something that is no longer possible.
    private mutating func dropUselessPrompt() {
        switch prompt {
        case .resign, .leave: if !isPlayingHere { prompt = nil }
        case .chat: if sitting?.table.guest == nil { prompt = nil }
        case .level: if view.place != .lobby { prompt = nil }
        case .help: if asker != nil { prompt = nil }
        case nil: break
        }
    }

    /// Whether the local player is in the middle of a game.
    var isPlayingHere: Bool { sitting.map { $0.ownDisc != nil && $0.table.isPlaying } ?? false }

    private mutating func take(_ news: LobbyNews, _ now: Moment) {
        switch news {
        case .table(.moved(let disc, let cell)):
            falling = style.animates ? FallingDisc(disc: disc, cell: cell, start: now) : nil
        case .table(.began): falling = nil
        case .table(.said(let disc, let words)):
            guard let sitting else { return }
            let speaker = disc == sitting.ownDisc ? "you" : PlayerNames(view, sitting)[disc]
            chat.add(ChatLog.Line(disc: disc, speaker: speaker, words: words))
        case .wentAway(let person, let waiting):
            if person.id == sitting?.other?.id { grace = Moment.Span(waiting) }
        default: break
        }
    }

    /// Returns whether a sentence announces this news. It does not where the screen shows the same for as long as it is
    /// true.
    private func needsSentence(_ news: LobbyNews) -> Bool {
        switch news {
        case .table(.said), .table(.ended), .table(.watched), .asked: false
        case .wentAway(let person, _): person.id != sitting?.other?.id
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
        guard let since = sitting?.other?.awaySince, let grace else { return nil }
        let left = (since + grace - now).nanoseconds
        return left <= 0 ? 0 : (left - 1) / Self.second + 1
    }

    private func nextSecond(after now: Moment) -> Moment? {
        guard let since = sitting?.other?.awaySince, let grace, let left = secondsLeft(now: now), left > 0
        else { return nil }
        return since + grace + .seconds(1 - left)
    }

    private static let second: Int64 = 1_000_000_000

    // MARK: Drawing

    /// Returns the screen as it is now, for a terminal of this size.
    func canvas(_ size: TerminalSize, now: Moment) -> Canvas {
        guard let layout = Layout(size) else { return TooSmall.canvas(size) }
        var canvas = Canvas(size)
        if let sitting {
            TableDrawing(screen: self, sitting: sitting, layout: layout, now: now).draw(into: &canvas)
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
