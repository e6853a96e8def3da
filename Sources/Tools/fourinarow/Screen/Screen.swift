import FourInARow
import NighCore
import Terminal

/// What the person in front of the terminal sees of the game, and what the keys mean: a value without I/O.
///
/// The program tells it what the lobby tells (`take`), hands it what the person does (`handle`) and does what it gets back, and
/// paints `canvas` after each of them and when `nextChange` has come. It asks for nothing the table would refuse.
struct Screen {
    private(set) var view: LobbyView
    let style: ScreenStyle
    /// What the lobby looks for tables over, for the sentence that says so.
    let transports: [String]
    var notices = Notices()
    var selection = TableSelection()
    var prompt: Prompt?
    /// Where a disc would be dropped.
    var column = Column.middle
    private(set) var chat = ChatLog()
    private(set) var falling: FallingDisc?
    /// Who was answered already and is still in the view.
    var answered: Set<PeerID> = []
    /// How long is waited for somebody to come back.
    private var patience: Moment.Span?

    /// A screen that shows `view`. `transports` are the schemes the program uses.
    init(_ view: LobbyView, style: ScreenStyle, transports: [String] = [], now: Moment) {
        self.view = view
        self.style = style
        self.transports = transports
        take(view, nil, now: now)
    }

    var glyphs: Glyphs { Glyphs(isUnicode: style.isUnicode) }

    var sitting: Sitting? { view.place.sitting }

    /// The first who waits for an answer.
    var asker: Asker? {
        guard case .hosting = view.place else { return nil }
        return view.askers.first { !answered.contains($0.id) }
    }

    // MARK: Being told

    /// The lobby is like this now, because of that.
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
        if isSaid(news), let sentence = Sentences.sentence(for: news, in: view) {
            notices.add(sentence, now: now)
        }
    }

    /// What the person has just asked for cannot be done.
    mutating func refused(_ breach: Breach, now: Moment) {
        notices.add(Sentences.sentence(for: breach, in: view), now: now)
    }

    /// Says something else.
    mutating func tell(_ words: String, now: Moment) { notices.add(words, now: now) }

    private mutating func leftTable() {
        chat = ChatLog()
        falling = nil
        patience = nil
        prompt = nil
        notices.clear()
    }

    private mutating func cameToTable() {
        column = .middle
        notices.clear()
        prompt = nil
    }

    /// Nobody is asked what cannot be done any more.
    private mutating func dropUselessPrompt() {
        switch prompt {
        case .resign, .leave: if !isPlayingHere { prompt = nil }
        case .chat: if sitting?.table.guest == nil { prompt = nil }
        case .level: if view.place != .lobby { prompt = nil }
        case .help: if asker != nil { prompt = nil }
        case nil: break
        }
    }

    /// Whether one is in the middle of a game.
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
            if person.id == sitting?.other?.id { patience = Moment.Span(waiting) }
        default: break
        }
    }

    /// Whether there is a sentence about it: not where the same stands on the screen as long as it is so.
    private func isSaid(_ news: LobbyNews) -> Bool {
        switch news {
        case .table(.said), .table(.ended), .table(.watched), .asked: false
        case .wentAway(let person, _): person.id != sitting?.other?.id
        case .transport: view.place != .lobby
        default: true
        }
    }

    // MARK: Time

    /// When the screen will look different by itself.
    func nextChange(after now: Moment) -> Moment? {
        [notices.nextChange(after: now), falling?.nextChange(after: now), nextSecond(after: now)]
            .compactMap { $0 }.min()
    }

    /// How many seconds are left to wait for whoever is away; nil where nobody knows.
    func secondsLeft(now: Moment) -> Int64? {
        guard let since = sitting?.other?.awaySince, let patience else { return nil }
        let left = (since + patience - now).nanoseconds
        return left <= 0 ? 0 : (left - 1) / Self.second + 1
    }

    private func nextSecond(after now: Moment) -> Moment? {
        guard let since = sitting?.other?.awaySince, let patience, let left = secondsLeft(now: now), left > 0
        else { return nil }
        return since + patience + .seconds(1 - left)
    }

    private static let second: Int64 = 1_000_000_000

    // MARK: Drawing

    /// The screen as it is now, for a terminal of that size.
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
    /// The one in which most players begin.
    static let middle = Column.allCases[Board.columns / 2]
}
