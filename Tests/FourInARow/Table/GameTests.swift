import Testing

@testable import FourInARow

struct GameTests {
    @Test("The starter moves first, then they take turns")
    func turns() throws {
        #expect(try game("").turn == .red)
        #expect(try game("", starter: .yellow).turn == .yellow)
        #expect(try game("d").turn == .yellow)
        #expect(try game("dd").turn == .red)
        #expect(try game("dd").lastCell?.description == "d2")
    }

    @Test("An impossible move is refused with the reason, and changes nothing")
    func refusalsSurviveARoundTrip() throws {
        var full = try game("aaaaaa")
        let before = full
        #expect(throws: Game.Refusal.columnFull) { try full.play(column("a"), by: .red) }
        #expect(throws: Game.Refusal.notYourTurn) { try full.play(column("b"), by: .yellow) }
        // A wrong turn is reported before a full column.
        #expect(throws: Game.Refusal.notYourTurn) { try full.play(column("a"), by: .yellow) }
        #expect(full == before)
        var over = try game("abababa")
        #expect(throws: Game.Refusal.over) { try over.play(column("c"), by: .yellow) }
    }

    @Test("A line ends the game, and its maker wins")
    func line() throws {
        let game = try game("abababa", starter: .yellow)
        #expect(game.ending == .line(.yellow))
        #expect(game.winner == .yellow)
        #expect(game.turn == nil)
    }

    @Test("A full board without a line is a draw")
    func draw() throws {
        let game = try game(drawnGame)
        #expect(game.board.isFull)
        #expect(game.ending == .draw)
        #expect(game.winner == nil)
    }

    @Test("A player who gives up loses; nobody wins if a player is gone or breaks the rules")
    func otherEndings() throws {
        var resigned = try game("d")
        resigned.end(.resigned(.yellow))
        #expect(resigned.winner == .red)
        for ending in [Game.Ending.left(.yellow), .brokenOff(.red, .garbage)] {
            var game = try game("d")
            game.end(ending)
            #expect(game.winner == nil)
            #expect(game.turn == nil)
            // A game that has ended keeps its ending.
            game.end(.draw)
            #expect(game.ending == ending)
        }
    }
}
