import NighCore
import Testing

@testable import FourInARow
@testable import fourinarow_solver

@Suite struct SearchTableTests {
    /// A key that `Position.spread` maps to `spread`.
    private func key(for spread: UInt64) -> UInt64 {
        let factor = Position.spread(1)
        var inverse = factor
        for _ in 0..<6 { inverse = inverse &* (2 &- factor &* inverse) }
        return (spread &* inverse) & (1 << 49 - 1)
    }

    @Test func `Keys of one bucket are distinguished, down to their last bit`() {
        var table = OutcomeTable()
        table.withAccess { table in
            for number in [1, 2, 8, 0x400_0000] as [UInt64] {
                let (kept, other) = (key(for: number), key(for: number ^ 1))
                #expect(Position.spread(kept) == number)
                table.store(kept, OutcomeTable.Known.draw, positions: 10)
                #expect(table.lookUp(kept) == OutcomeTable.Known.draw)
                #expect(table.lookUp(other) == OutcomeTable.Known.nothing)
                #expect(table.lookUp(key(for: number ^ 1 << 20)) == OutcomeTable.Known.nothing)
            }
        }
    }

    @Test func `A result that took much work stays when a thousand cheaper ones are stored`() {
        var table = OutcomeTable()
        table.withAccess { table in
            table.store(key(for: 1), OutcomeTable.Known.loss, positions: 1_000_000)
            for number in 2..<1_000 as Range<UInt64> {
                table.store(key(for: number), OutcomeTable.Known.win, positions: 5)
                #expect(table.lookUp(key(for: number)) == OutcomeTable.Known.win)
            }
            #expect(table.lookUp(key(for: 1)) == OutcomeTable.Known.loss)
        }
    }

    @Test func `A result of one horizon is not used for another, nor a bound as an exact value`() {
        var random = SeededGenerator(seed: 5)
        var shared = HorizonTable(entryBits: 17)
        for _ in 0..<20 {
            let drawn = RandomPosition(discs: 8, random: &random)
            let position = Position(drawn.board, toMove: drawn.toMove)
            for depth in [3, 5, 4] {
                var fresh = HorizonTable(entryBits: 17)
                let exact = fresh.moveValues(position, depth: depth, margin: HorizonSearch.infinity)
                let narrow = shared.moveValues(position, depth: depth, margin: 0)
                let again = shared.moveValues(position, depth: depth, margin: HorizonSearch.infinity)
                #expect(narrow.moves[0].value == exact.moves[0].value)
                #expect(again.moves.map(\.value) == exact.moves.map(\.value))
            }
        }
    }
}
