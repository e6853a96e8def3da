/// The values that a search to a horizon gives to the moves of one position.
struct MoveValues {
    /// The columns with room and the value of a disc there, the best first. Among equals, the nearest to the middle
    /// comes first.
    let moves: [(column: Column, value: Int)]

    /// Returns the columns that are as good as the best one.
    ///
    /// If the best value is an estimate, this includes the columns that are worse by up to `margin`, without certain
    /// losses.
    func best(within margin: Int) -> [Column] {
        let top = moves[0].value
        let least =
            HorizonSearch.isCertain(top)
            ? top : max(top - min(margin, HorizonSearch.win), -HorizonSearch.win / 2)
        return moves.filter { $0.value >= least }.map(\.column)
    }
}

extension HorizonTable {
    /// Searches `depth` moves ahead from a position without a line.
    ///
    /// Values are exact down to `margin` below the best. A move with a lower value is certain to be worse, but its
    /// value is not exact.
    mutating func moveValues(_ position: Position, depth: Int, margin: Int) -> MoveValues {
        let landings = position.landings
        let columns = [3, 2, 4, 1, 5, 0, 6].map { Column.allCases[$0] }
        let wins = Position.winningCells(position.mover, position.occupied)
        var moves: [(column: Column, value: Int)] = []
        var best = -HorizonSearch.infinity
        for column in columns {
            let landing = landings & Position.columnMask(column.index)
            guard landing != 0 else { continue }
            let value: Int
            if landing & wins != 0 {
                value = HorizonSearch.win - (position.count + 1)
            } else if depth == 0 {
                value = 0
            } else {
                let lower = max(best - min(margin, HorizonSearch.infinity) - 1, -HorizonSearch.infinity)
                value = withAccess { table in
                    Candidates.withMemory { candidates in
                        var search = HorizonSearch(
                            table: table, candidates: candidates, horizon: position.count + depth)
                        return -search.value(
                            position.playing(landing), above: -HorizonSearch.infinity, below: -lower)
                    }
                }
            }
            best = max(best, value)
            let place = moves.firstIndex { $0.value < value } ?? moves.endIndex
            moves.insert((column, value), at: place)
        }
        return MoveValues(moves: moves)
    }
}
