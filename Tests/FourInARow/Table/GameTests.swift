import Testing

@testable import FourInARow

struct GameTests {
    @Test func `The starter moves first, then they take turns`() throws {
        #expect(try game("").turn == .red)
        #expect(try game("", starter: .yellow).turn == .yellow)
        #expect(try game("d").turn == .yellow)
        #expect(try game("dd").turn == .red)
        #expect(try game("dd").lastCell?.description == "d2")
    }

    @Test func `An impossible move is refused with the reason, and changes nothing`() throws {
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

    @Test func `A line ends the game, and its maker wins`() throws {
        let game = try game("abababa", starter: .yellow)
        #expect(game.ending == .line(.yellow))
        #expect(game.winner == .yellow)
        #expect(game.turn == nil)
    }

    @Test func `A full board without a line is a draw`() throws {
        let game = try game(drawnGame)
        #expect(game.board.isFull)
        #expect(game.ending == .draw)
        #expect(game.winner == nil)
    }

    @Test func `A player who gives up loses; nobody wins if a player is gone or breaks the rules`() throws {
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
